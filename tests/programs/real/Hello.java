// An ordinary program: threads, exceptions, null pointers (which are faults that are caught),
// deep recursion (likewise), files and sub-processes.
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Hello {
    static int depth(int n) { return 1 + depth(n + 1); }

    public static void main(String[] args) throws Exception {
        System.out.println("Hello " + String.join(",", args));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 1; i <= 8; i++) {
            final int n = i;
            results.add(pool.submit(() -> LongStream.range(0, 100000).map(x -> x % n).sum()));
        }
        for (Future<Long> result : results)
            System.out.println(result.get());
        pool.shutdown();
        int caught = 0;
        for (int i = 0; i < 1000; i++)
            try {
                String nothing = i % 2 == 0 ? null : "text";
                caught += nothing.length();
            } catch (NullPointerException e) {
                caught++;
            }
        System.out.println("caught " + caught);
        try {
            depth(0);
        } catch (StackOverflowError e) {
            System.out.println("stack overflow caught");
        }
        Map<Integer, Long> counts = IntStream.range(0, 10000).parallel().boxed()
            .collect(Collectors.groupingBy(n -> n % 3, TreeMap::new, Collectors.counting()));
        System.out.println(counts);
        Path file = Paths.get("file");
        Files.write(file, Collections.nCopies(100, "line"));
        System.out.println(Files.size(file));
        Process child = new ProcessBuilder("sh", "-c", "echo from a child; exit 5").start();
        System.out.print(new String(child.getInputStream().readAllBytes()));
        System.out.println(child.waitFor());
        System.gc();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("shutdown hook")));
        System.err.println("to standard error");
        System.exit(14);
    }
}
