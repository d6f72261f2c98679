# A script that starts 24 programs one after the other, each of which computes for longer than it takes to start.
# cause: none
step=0
while [ "$step" -lt 24 ]; do
    awk 'BEGIN { for (i = 0; i < 600000; i++) sum += i % 7; exit sum < 0 }'
    step=$((step + 1))
done
