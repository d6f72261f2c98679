# A script that starts three programs, each of which has something to do.
# cause: none
for i in 1 2 3; do
    sleep 0.15
done
