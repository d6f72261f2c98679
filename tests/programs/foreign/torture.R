# A collection at each allocation inside of library calls, and errors that leave them by longjmp.
text <- vapply(1:12, function(i) paste(rep(letters[i], i), collapse = ""), "")
gctorture(TRUE)
joined <- gsub("(b+)", "<\\1>", paste(text, collapse = " "), perl = TRUE)
parts <- strsplit(joined, " ")[[1]]
gctorture(FALSE)
cat(joined, length(parts), "\n")

left <- 0
for (i in 1:300) left <- left + tryCatch({
  sapply(1:5, function(x) if (x == 3) stop("left") else x)
  0
}, error = function(e) 1, finally = nchar(sprintf("%d", i)))
cat(left, "\n")

finalised <- 0
for (i in 1:50) reg.finalizer(new.env(), function(e) finalised <<- finalised + 1)
invisible(gc())
cat(finalised, "\n")

cat(optimize(function(x) { if (runif(1) > 2) gc(); (x - 1 / 3)^2 }, c(0, 1))$minimum, "\n")
cat(integrate(function(x) { gc(FALSE); exp(-x^2) }, -Inf, Inf)$value, "\n")
found <- withCallingHandlers(
  withRestarts({ warning("w"); 1 }, skip = function() 2),
  warning = function(w) invokeRestart("skip"))
set.seed(1)
m <- matrix(rnorm(3600), 60)
cat(found, format(sum(solve(m) %*% m), digits = 6), format(sum(svd(m)$d), digits = 6), "\n")
cat(nchar(rawToChar(memDecompress(memCompress(charToRaw(strrep("chase", 5000)), "gzip"), "gzip"))), "\n")
quit(status = 3)
