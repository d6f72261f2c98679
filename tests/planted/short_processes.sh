# A script that starts a program for each item.
# cause: short-processes
# says: expr
# also: late-at-barrier
i=0
while [ "$i" -lt 40 ]; do
    i=$(expr "$i" + 1)
done
