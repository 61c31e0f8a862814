"""Servers that the tests of all engines share."""

from tests.engines import running, servers, spark_session

postgres = servers.postgres
spark = spark_session.spark
duck, engine = running.duck, running.engine
