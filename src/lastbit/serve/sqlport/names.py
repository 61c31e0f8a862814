"""Names of what a catalogue question may hold, and of commands that are refused.

Law      what is not named here is not called (`rereading.py`)
Checked  tests/serve/test_sqlport_catalogue.py
"""

from __future__ import annotations

_MADE = """
_pg_char_max_length _pg_datetime_precision _pg_expandarray _pg_numeric_precision
_pg_numeric_scale _pg_truetypid _pg_truetypmod array_lower array_ndims array_upper btrim
col_description current_catalog current_database current_role current_schema current_schemas
current_setting current_user format_type has_any_column_privilege has_column_privilege
has_database_privilege has_function_privilege has_schema_privilege has_sequence_privilege
has_table_privilege has_tablespace_privilege inet_client_addr inet_server_addr inet_server_port
obj_description pg_advisory_unlock_all pg_backend_pid pg_char_to_encoding pg_client_encoding
pg_collation_is_visible pg_column_size pg_conf_load_time pg_conversion_is_visible
pg_current_xact_id pg_database_size pg_encoding_to_char pg_function_is_visible
pg_get_constraintdef pg_get_expr pg_get_function_arguments pg_get_function_identity_arguments
pg_get_function_result pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partkeydef
pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef_columns pg_get_triggerdef
pg_get_userbyid pg_get_viewdef pg_has_role pg_indexes_size pg_is_in_recovery
pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
pg_opfamily_is_visible pg_postmaster_start_time pg_relation_is_publishable pg_relation_size
pg_sequence_last_value pg_size_pretty pg_stat_get_numscans pg_statistics_obj_is_visible
pg_table_is_visible pg_table_size pg_tablespace_location pg_total_relation_size
pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible
pg_type_is_visible quote_ident quote_literal regclass_text session_user set_config
shobj_description to_regclass to_regnamespace to_regproc to_regtype txid_current version
"""
MADE = frozenset(_MADE.split())
"""Functions that `functions.sql` makes, called with a prefix there."""
_CALLED_NAMES = """
+ - * / // % || ^ & | ~ << >> ~~ !~~ ~~* !~~*
abs any_value array_agg array_append array_cat array_length array_position array_remove
array_to_string avg bool_and bool_or cardinality ceil ceiling
char_length character_length concat concat_ws count count_star date_part date_trunc dense_rank
every first_value floor generate_series generate_subscripts greatest ifnull initcap json_array
json_group_array json_object lag last_value lead least left length like_escape list_append
list_concat list_contains list_position list_value listagg lower ltrim max md5 min mod now nullif
nvl position rank regexp_full_match regexp_matches regexp_replace replace reverse right round row
row_number rtrim split_part sqrt starts_with str_split string_agg string_split string_to_array
strpos substr substring sum to_days to_json translate trim trunc unhex unnest upper xor
"""
CALLED = frozenset(_CALLED_NAMES.split())
"""Functions and operators of the database that may be called, by its own names of them."""
_KIND_NAMES = """
CTE_NODE RECURSIVE_CTE_NODE SELECT_NODE SET_OPERATION_NODE
BASE_TABLE EMPTY EXPRESSION_LIST JOIN SUBQUERY TABLE_FUNCTION
ASCENDING DESCENDING DISTINCT_MODIFIER LIMIT_MODIFIER ORDER_DEFAULT ORDER_MODIFIER
ARRAY_EXTRACT ARRAY_SLICE CASE_EXPR COLUMN_REF COMPARE_BETWEEN COMPARE_DISTINCT_FROM COMPARE_EQUAL
COMPARE_GREATERTHAN COMPARE_GREATERTHANOREQUALTO COMPARE_IN COMPARE_LESSTHAN
COMPARE_LESSTHANOREQUALTO COMPARE_NOTEQUAL COMPARE_NOT_DISTINCT_FROM CONJUNCTION_AND CONJUNCTION_OR
FUNCTION OPERATOR_CAST OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL OPERATOR_NOT
POSITIONAL_REFERENCE STAR STRUCT_EXTRACT TYPE VALUE_CONSTANT WINDOW_AGGREGATE WINDOW_FIRST_VALUE
WINDOW_LAG WINDOW_LAST_VALUE WINDOW_LEAD WINDOW_RANK WINDOW_RANK_DENSE WINDOW_ROW_NUMBER
"""
KINDS = frozenset(_KIND_NAMES.split())
"""Kinds of nodes, by the database's names of them: no command, no SHOW, no lambda, no parameter."""
_WRITE_NAMES = """
alter analyze call cluster comment copy create delete do drop execute grant import insert merge
notify prepare reassign refresh reindex revoke security truncate update vacuum
"""
WRITES = frozenset(_WRITE_NAMES.split())
"""Commands that would change something: refused as such."""
