import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;

/** A worker that does what its request says: answers, sleeps, dies, fills its memory. */
public class Probe {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                for (String line; (line = in.readLine()) != null; ) lines.add(line);
            } catch (IOException ignored) {
            }
            Runtime.getRuntime().halt(0);
        });
        reader.setDaemon(true);
        reader.start();
        out.println("{\"ready\": true}");
        List<byte[]> memory = new ArrayList<>();
        while (true) {
            String line = lines.take();
            String id = find(line, "\"id\": (\\d+)");
            switch (find(line, "\"op\": \"(\\w+)\"")) {
                case "echo" -> out.println("{\"id\": " + id + ", \"answer\": " + find(line, "\"value\": (.*)}$") + "}");
                case "pid" -> out.println("{\"id\": " + id + ", \"answer\": " + ProcessHandle.current().pid() + "}");
                case "fail" -> out.println("{\"id\": " + id + ", \"error\": \"no such thing\"}");
                case "garbage" -> out.println("no JSON");
                case "sleep" -> Thread.sleep(3_600_000);
                case "exit" -> System.exit(7);
                case "fill" -> { while (true) memory.add(new byte[1 << 20]); }
                case "keep" -> {
                    for (int n = 0; n < 24; n++) memory.add(new byte[1 << 20]);
                    out.println("{\"id\": " + id + ", \"answer\": " + memory.size() + "}");
                }
                case "shout" -> {
                    for (int n = 0; n < 100_000; n++) System.out.println("a line of 100 characters ".repeat(4));
                    out.println("{\"id\": " + id + ", \"answer\": 1}");
                }
            }
        }
    }

    private static String find(String line, String pattern) {
        Matcher matcher = Pattern.compile(pattern).matcher(line);
        return matcher.find() ? matcher.group(1) : "";
    }
}
