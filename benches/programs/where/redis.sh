# A server and who asks it, both recorded: sh redis.sh REQUESTS
socket=$PWD/redis.socket
rm -f "$socket"
redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$PWD" >server.log 2>&1 &
until redis-cli -s "$socket" ping >ping.log 2>&1; do sleep 0.05; done
redis-benchmark -s "$socket" -c 20 -n "$1" -t set,get,lrange_100 -q >benchmark.log
redis-cli -s "$socket" shutdown nosave >shutdown.log 2>&1
wait
