# The walk of test_sqlport_clients.py, by RPostgres, or by RPostgreSQL where that is all there is.
told <- commandArgs(trailingOnly = TRUE)
library(DBI)
driver <- if (requireNamespace("RPostgres", quietly = TRUE)) {
  RPostgres::Postgres()
} else if (requireNamespace("RPostgreSQL", quietly = TRUE)) {
  RPostgreSQL::PostgreSQL()
} else {
  quit(status = 77)
}
con <- dbConnect(driver, host = told[1], port = as.integer(told[2]), user = "ana",
                 password = told[3], dbname = "lastbit", options = "-c lastbit.epsilon=0.5")
say <- function(name, lines) if (length(lines)) cat(paste0(name, ": ", lines, "\n"), sep = "")
asked <- function(name, sql) {
  rows <- dbGetQuery(con, sql)
  say(name, do.call(paste, c(lapply(rows, as.character), sep = "|")))
}
say("table", dbListTables(con))
say("columns", paste(dbListFields(con, "visits"), collapse = ", "))
asked("preview", paste("EXPLAIN", told[4]))
asked("row", told[4])
asked("again", told[4])
# RPostgreSQL says what is wrong on the error stream alone
refused <- function(name, sql) tryCatch(asked(name, sql), error = function(e) say(name, conditionMessage(e)))
message("refused:")
refused("refused", "SELECT * FROM visits")
message("exhausted:")
invisible(dbExecute(con, "SET lastbit.epsilon = '1000'"))
refused("exhausted", sub("15", "16", told[4], fixed = TRUE))
invisible(dbDisconnect(con))
