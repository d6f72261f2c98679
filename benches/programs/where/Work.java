import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.Deflater;

/** Compiled code, the collector, and zlib. */
class Work {
    public static void main(String[] arguments) {
        Random random = new Random(1);
        byte[] out = new byte[1 << 20];
        long sum = 0;
        for (int round = 0; round < 26; round++) {
            List<String> rows = new ArrayList<>();
            for (int i = 0; i < 120_000; i++)
                rows.add("item " + random.nextInt(1_000_000));
            rows.sort(null);
            byte[] text = String.join("\n", rows).getBytes();
            Deflater deflater = new Deflater(6);
            deflater.setInput(Arrays.copyOf(text, 900_000));
            deflater.finish();
            sum += deflater.deflate(out);
            deflater.end();
        }
        System.out.println(sum > 0);
    }
}
