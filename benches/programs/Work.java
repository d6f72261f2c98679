import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class Work {
    public static void main(String[] arguments) {
        List<String> rows = new ArrayList<>();
        for (int i = 0; i < 200_000; i++)
            rows.add("{\"id\": " + i + ", \"name\": \"item " + (i * 7919L) % 200_003 + "\"}");
        rows.sort(null);
        Pattern name = Pattern.compile("item (\\d+)");
        TreeMap<String, Integer> prefixes = new TreeMap<>();
        long sum = 0;
        for (String row : rows) {
            Matcher matcher = name.matcher(row);
            if (!matcher.find())
                throw new IllegalStateException(row);
            sum += Long.parseLong(matcher.group(1));
            prefixes.merge(matcher.group(1).substring(0, 1), 1, Integer::sum);
        }
        System.out.println(sum + " " + prefixes + " " + rows.get(0));
    }
}
