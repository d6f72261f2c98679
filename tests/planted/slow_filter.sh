#!/bin/sh
# A pipeline whose filter is slow: who writes into it waits for room, and who reads from it for data, and both do next to nothing.
# cause: limiting-stage
# group: awk
# object: pipe
# waker: awk, in
seq 1 60000 | awk '{ sum = 0; for (i = 0; i < 40; i++) sum += i * $1 % 7; print sum, $1 }' | cat >/dev/null
