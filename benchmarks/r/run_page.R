# Run every block of docs/r.md, and read every table it writes with read.csv: `make r-page`.
#
# Needs R with install.packages(c("reticulate", "Matrix")), and mmpca on the path.

page <- readLines(if (length(commandArgs(TRUE))) commandArgs(TRUE)[1] else "docs/r.md", encoding = "UTF-8")
folder <- tempfile("r-page-")
dir.create(folder)
setwd(folder)
options(warn = 2)

# The page's data, with names that are easily damaged in CSV files.
set.seed(0)
profiles <- matrix(rexp(3 * 12)^2, 3)
counts <- t(sapply(rep(1:3, 30), function(cluster) rmultinom(1, 80, profiles[cluster, ])))
rownames(counts) <- c("a, b", "say \"hi\"", "Z\u00fcrich", "#4", "it's", "007", "-x", "NA", paste0("s", 9:90))
colnames(counts) <- c("a,b", "\"hi\"", "\u00df", "#hash", "it's", "2nd", "two words", "NA", "TRUE", "1e5", "a;b", "=1+1")
X <- Matrix::Matrix(counts, sparse = TRUE)
words <- list(c("boat", "sail", "wind"), c("bank", "money", "m\u00e4rkte"), c("goal", "coach", "team"))
texts <- sapply(rep(words, 10), function(own) paste("the", paste(sample(own, 4, replace = TRUE), collapse = " ")))

# A failing command ends the run.
system <- function(command) {
  cat("$", command, "\n")
  if (base::system(paste(command, "> output.txt 2>&1")) != 0) stop(paste(readLines("output.txt"), collapse = "\n"))
}

starts <- which(page == "```r")
ends <- sapply(starts, function(start) start + which(page[-seq_len(start)] == "```")[1])
stopifnot(length(starts) > 0, !anyNA(ends))
for (block in seq_along(starts)) {
  code <- parse(text = page[(starts[block] + 1):(ends[block] - 1)], encoding = "UTF-8")
  for (call in code) {
    value <- withVisible(eval(call, globalenv()))
    if (value$visible) print(value$value)
  }
}

# In every table, names are unchanged and all other columns are numeric.
is_name <- c("row", "cluster_name", "name", "feature", "features", "representative_rows", "kind")
for (file in list.files(pattern = "[.]csv$", recursive = TRUE)) {
  found <- read.csv(file)
  plain <- if (file == "counts.csv") found[-1] else found[setdiff(names(found), is_name)]
  stopifnot(nrow(found) > 0, sapply(plain, is.numeric))
  if (file != "counts.csv" && "row" %in% names(found)) {
    stopifnot(identical(found$row, replace(rownames(counts), rownames(counts) == "NA", NA)))
  }
  if ("feature" %in% names(found)) stopifnot(found$feature %in% c(colnames(counts), NA))
  cat(file, ":", nrow(found), "rows\n")
}
stopifnot(identical(labels$row, rownames(counts)), file.exists("texts.html"))
