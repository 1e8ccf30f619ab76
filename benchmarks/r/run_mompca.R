# Run the authors' R package on simulated data, and write what `make parity` reads.
#
#   mmpca simulate counts.mtx --rows 400 --noise 0.2 --labels truth.csv
#   Rscript benchmarks/r/run_mompca.R counts.mtx truth.csv runs/noise-0.2 6 4
#   make parity REFERENCE=runs
#
# Needs R with install.packages(c("MoMPCA", "topicmodels", "slam", "tm", "Matrix")). Only the documented interface of
# MoMPCA is used. A run with 400 rows takes minutes. The data need not be simulated by mmpca: any Matrix Market file of
# counts, rows first, with a file of one label per row works.

suppressPackageStartupMessages({
  library(Matrix)
  library(MoMPCA)
})

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) < 5) {
  stop("Usage: Rscript run_mompca.R COUNTS.mtx LABELS.csv FOLDER CLUSTERS TOPICS [SEED] [EPOCHS]", call. = FALSE)
}
folder <- arguments[3]
n_clusters <- as.integer(arguments[4])
n_topics <- as.integer(arguments[5])
seed <- if (length(arguments) > 5) as.integer(arguments[6]) else 1L
epochs <- if (length(arguments) > 6) as.integer(arguments[7]) else 7L

# Labels: the last field of each line; a first line without a number or name of a row is a header.
read_labels <- function(path) {
  lines <- readLines(path)
  fields <- sub(".*,", "", lines)
  if (suppressWarnings(is.na(as.numeric(fields[1])))) fields <- fields[-1]
  as.integer(factor(fields, levels = unique(fields)))
}

counts <- as(readMM(arguments[1]), "TsparseMatrix")
truth <- read_labels(arguments[2])
stopifnot(length(truth) == nrow(counts))
words <- sprintf("w%06d", seq_len(ncol(counts)))
documents <- slam::simple_triplet_matrix(
  i = counts@i + 1L, j = counts@j + 1L, v = counts@x, nrow = nrow(counts), ncol = ncol(counts),
  dimnames = list(as.character(seq_len(nrow(counts))), words)
)
dtm <- tm::as.DocumentTermMatrix(documents, weighting = tm::weightTf)

# Topics: LDA with a row prior of one, as the package learns them. They are learned here, because a run must record the
# topics it used, and passed on as a matrix.
set.seed(seed)
topic_time <- system.time(
  lda <- topicmodels::LDA(dtm, k = n_topics, method = "VEM",
                          control = list(alpha = 1, estimate.alpha = FALSE, seed = seed))
)
beta <- exp(lda@beta)
beta <- beta / rowSums(beta)

# The start is drawn here for the same reason; set.seed does not reach a random start of the package.
start <- sample(rep_len(seq_len(n_clusters), nrow(counts)))
search_time <- system.time(
  result <- mmpca_clust(dtm, Q = n_clusters, K = n_topics, Yinit = start, init.beta = beta, method = "BBCVEM",
                        max.epochs = epochs, keep = 1, verbose = 0, nruns = 1, mc.cores = 1)
)

dir.create(folder, recursive = TRUE, showWarnings = FALSE)
path <- function(name) file.path(folder, name)
invisible(writeMM(as(counts, "CsparseMatrix"), path("counts.mtx")))
system2("gzip", c("-f", shQuote(path("counts.mtx"))))
write_labels <- function(labels, name) writeLines(as.character(as.integer(labels) - 1L), path(name))
write_labels(truth, "labels.csv")
write_labels(start, "start.csv")
write_labels(result@clustering, "final.csv")
write.table(format(beta, digits = 17, trim = TRUE, scientific = TRUE), path("beta_init.csv"),
            sep = ",", quote = FALSE, row.names = FALSE, col.names = FALSE)
cpu <- function(time) sum(time[c("user.self", "sys.self", "user.child", "sys.child")], na.rm = TRUE)
numbers <- c(
  n_clusters = n_clusters, n_topics = n_topics, bound = result@llhood, icl = result@icl,
  beta_cpu_seconds = cpu(topic_time), search_cpu_seconds = cpu(search_time)
)
writeLines(c("name,value", sprintf("%s,%.17g", names(numbers), numbers)), path("result.csv"))
cat(sprintf("bound %.3f, ICL %.3f, %.0f s of processor time for the search; written to %s\n",
            result@llhood, result@icl, cpu(search_time), folder))
