// Threads with names that the program gives, and those of a pool.
import java.util.concurrent.*;

public class Kinds {
    public static void main(String[] arguments) throws Exception {
        Thread named = new Thread(() -> System.out.println("named"), "my-loader");
        named.start();
        named.join();
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Future<?> first = pool.submit(() -> 1), second = pool.submit(() -> 2);
        System.out.println(first.get() + " " + second.get());
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
    }
}
