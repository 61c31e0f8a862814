"""Names of functions that the catalogue may call, and of commands that are refused.

Law      what is not named here is not called (`rewriting.py`)
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
_KNOWN_NAMES = """
abs all array_agg array_append array_cat array_length array_position array_remove
array_to_string avg bool_and bool_or cardinality ceil ceiling char_length character_length
concat concat_ws count date_part date_trunc dense_rank every exists first_value floor
generate_series generate_subscripts greatest initcap json_agg json_array json_object lag
last_value lead least left length lower ltrim max md5 min mod now nullif nvl position rank
regexp_matches regexp_replace replace reverse right round row_number rtrim split_part sqrt
starts_with string_agg string_to_array strpos substr substring sum to_json translate trim trunc
unnest upper
"""
KNOWN = frozenset(_KNOWN_NAMES.split())
"""Functions that the database has under the same names."""
_TYPED_NAMES = """
Abs Alias All And Anonymous Any Array ArrayAgg ArrayAppend ArrayConcat ArrayLength ArrayPosition
ArrayRemove ArraySize ArrayToString Avg Case Cast Ceil Coalesce Concat ConcatWs Count
CurrentCatalog CurrentDatabase CurrentDate CurrentSchema CurrentSchemas CurrentTime
CurrentTimestamp CurrentUser CurrentVersion DateTrunc DenseRank Exists Explode
ExplodingGenerateSeries Extract FirstValue Floor GenerateSeries Greatest GroupConcat If Initcap
JSONArray JSONArrayAgg JSONObject Lag LastValue Lead Least Left Length LogicalAnd LogicalOr
Lower MD5 Max Min Mod Nullif Or Rank RegexpILike RegexpLike RegexpReplace Replace Reverse Right
Round RowNumber SessionUser SplitPart Sqrt StartsWith StrPosition StringToArray Substring Sum
TimestampTrunc Translate Trim Trunc TryCast Unnest Upper Xor
"""
TYPED = frozenset(_TYPED_NAMES.split())
"""Functions that the parser has a class for."""
_WRITE_NAMES = """
alter analyze call cluster comment copy create delete do drop execute grant import insert merge
notify prepare reassign refresh reindex revoke security truncate update vacuum
"""
WRITES = frozenset(_WRITE_NAMES.split())
"""Commands that would change something: refused as such."""
