"""Functions that a question may call. None reads a file, the network, settings, or anything but its arguments."""

from __future__ import annotations

ALLOWED = frozenset(
    """
    abs acos age any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_min array_agg
    array_append array_concat array_contains array_distinct array_extract array_length array_position array_size
    array_slice array_sort array_to_string ascii asin atan atan2 avg bar base64 bit_and bit_count bit_length bit_or
    bit_xor bool_and bool_or case cast cbrt ceil ceiling century char_length character_length chr coalesce concat
    concat_ws contains corr cos cosh cot count count_if countif covar_pop covar_samp cume_dist current_date
    current_time current_timestamp date_add date_diff date_format date_part date_sub date_trunc datediff
    date datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade degrees dense_rank editdist3 ends_with
    entropy epoch epoch_ms era exp extract factorial favg filter first first_value flatten floor format from_base64
    fsum generate_series geomean geometric_mean greatest group_concat hamming hash histogram hour if ifnull in_
    instr initcap is_inf is_nan isfinite isinf isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity
    julian kurtosis lag last last_day last_value lcase lead least left length len levenshtein list list_aggregate
    list_avg list_concat list_contains list_count list_distinct list_extract list_filter list_has list_max list_min
    list_position list_reduce list_slice list_sort list_sum list_transform ln log log10 log2 lower lpad ltrim mad
    make_date make_time make_timestamp max max_by md5 mean median microsecond millennium millisecond min min_by
    minute mod mode month monthname nfc_normalize now nth_value ntile nullif parse_filename percent_rank
    percentile_cont percentile_disc pi position pow power printf product quantile quantile_cont quantile_disc
    quarter radians random range rank regexp_count regexp_extract regexp_extract_all regexp_full_match regexp_ilike
    regexp_like regexp_matches regexp_replace regexp_split regexp_split_to_array regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope repeat replace reverse right round round_even row_number rpad rtrim safe_divide
    second sem sign sin skewness split split_part sqrt starts_with stddev stddev_pop stddev_samp strftime string_agg
    string_split string_to_array strip_accents strlen strpos strptime str_split struct_extract substr substring sum
    tan time_bucket to_days to_hours to_minutes to_months to_seconds to_timestamp to_weeks to_years translate trim
    trunc try_cast try_strptime typeof ucase unicode unnest upper var_pop var_samp variance week weekday weekofyear
    width_bucket xor year yearweek
    """.split()  # noqa: SIM905
)

# The same, by the names of their classes in sqlglot.
CLASSES = frozenset(
    """
    anyvalue approxdistinct approxquantile approxtopk argmax argmin arrayagg arrayappend arrayconcat
    arraycontains arraydistinct arraysize arrayposition arrayslice arraysort arraytostring bitwiseandagg
    bitlength bitwiseoragg bitwisexoragg logicaland logicalor concatws covarpop covarsamp cumedist currentdate
    currenttime currenttimestamp dateadd timestamptrunc denserank endswith timetounix unixtotime arrayfilter
    firstvalue frombase64 generateseries groupconcat strposition dayofweekiso jarowinklersimilarity lastday
    lastvalue arraymax arraymin transform pad datefromparts timefromparts timestampfromparts nthvalue
    percentrank percentilecont percentiledisc rand regexpcount regexpextract regexpextractall regexpfullmatch
    regexplike regexpilike regexpreplace regexpsplit regravgx regravgy regrcount regrintercept regrr2 regrslope
    rownumber safedivide splitpart startswith stddevpop stddevsamp timetostr strtotime structextract datebin
    todays explode variancepop widthbucket and or array trycast exists struct datetrunc datediff timestampdiff
    timestampadd timestampsub datesub dayofweek dayofmonth dayofyear weekofyear tsordstotimestamp tsordstodate
    countif quantile stddev variance currentdatetime strtodate
    """.split()  # noqa: SIM905
)
