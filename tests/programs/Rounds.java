// Threads that work in rounds, as rounds.cpp does, with garbage to collect.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32;

public class Rounds {
    static final int THREADS = 8, PIECES = 200;

    static long piece(int round, int thread) {
        long sum = 0;
        for (int i = 0; i < PIECES; i++) {
            byte[] bytes = new byte[2000];
            bytes[i] = (byte) (round + thread);
            CRC32 crc = new CRC32();
            crc.update(bytes);
            sum += crc.getValue();
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (int round = 1; input.readLine() != null; round++) {
            List<Future<Long>> parts = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int number = round, of = thread;
                parts.add(threads.submit((Callable<Long>) () -> piece(number, of)));
            }
            long sum = 0;
            for (Future<Long> part : parts)
                sum += part.get();
            System.out.println(round + " " + sum);
        }
        threads.shutdown();
        System.out.println();
    }
}
