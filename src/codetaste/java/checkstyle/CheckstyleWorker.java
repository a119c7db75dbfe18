import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.puppycrawl.tools.checkstyle.Checker;
import com.puppycrawl.tools.checkstyle.ConfigurationLoader;
import com.puppycrawl.tools.checkstyle.PropertiesExpander;
import com.puppycrawl.tools.checkstyle.api.AuditEvent;
import com.puppycrawl.tools.checkstyle.api.AuditListener;
import com.puppycrawl.tools.checkstyle.api.Configuration;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Stream;
import org.xml.sax.InputSource;

/**
 * Checkstyle with the protocol of java/worker/program.py.
 *
 * <p>A request has "rules", a configuration of Checkstyle, and "contents", Java texts by path. The answer has the
 * violations and the paths of texts that are no Java. Names are those of codetaste.java.checkstyle.service.
 */
public final class CheckstyleWorker {
    private static final Gson GSON = new Gson();
    private static final long STACK_BYTES = 256L << 20; // the parser recurses over deep expressions

    record Request(String rules, Map<String, String> contents) {}

    record Violation(String path, int line, String rule, String message) {}

    record Answer(List<Violation> violations, Set<String> unreadable) {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a library prints is no answer
        BlockingQueue<String> requests = new LinkedBlockingQueue<>();
        Thread worker = new Thread(null, () -> serve(requests, answers), "requests", STACK_BYTES);
        worker.setDaemon(true);
        worker.start();
        answers.println("{\"ready\": true}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            requests.add(line);
        }
        Runtime.getRuntime().halt(0); // codetaste is gone, perhaps in the middle of a request
    }

    private static void serve(BlockingQueue<String> requests, PrintStream answers) {
        try {
            while (true) {
                answers.println(answer(requests.take()));
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static String answer(String line) {
        JsonObject answer = new JsonObject();
        try {
            answer.add("id", GSON.fromJson(line, JsonObject.class).get("id"));
            answer.add("answer", GSON.toJsonTree(check(GSON.fromJson(line, Request.class))));
        } catch (Throwable error) { // an error without an answer would cost the whole time-out
            answer.addProperty("error", error.toString());
        }
        return GSON.toJson(answer);
    }

    /** Each text is a file with its own name, as rules may read it, in a folder of its own. */
    private static Answer check(Request request) throws Exception {
        Path folder = Files.createTempDirectory("checkstyle");
        try {
            Map<String, String> paths = new LinkedHashMap<>();
            for (Map.Entry<String, String> each : new TreeMap<>(request.contents).entrySet()) {
                String name = each.getKey().substring(each.getKey().lastIndexOf('/') + 1);
                Path file = Files.createDirectory(folder.resolve("" + paths.size())).resolve(name);
                Files.writeString(file, each.getValue(), StandardCharsets.UTF_8);
                paths.put(file.toString(), each.getKey());
            }
            return check(request.rules, paths);
        } finally {
            remove(folder);
        }
    }

    private static Answer check(String rules, Map<String, String> paths) throws Exception {
        Configuration configuration = ConfigurationLoader.loadConfiguration(
                new InputSource(new StringReader(rules)), new PropertiesExpander(new Properties()),
                ConfigurationLoader.IgnoredModulesOptions.EXECUTE);
        Answer answer = new Answer(new ArrayList<>(), new TreeSet<>());
        Checker checker = new Checker();
        try {
            checker.setModuleClassLoader(Checker.class.getClassLoader());
            checker.configure(configuration);
            checker.addListener(new Collector(answer, paths));
            checker.process(paths.keySet().stream().map(File::new).toList());
        } finally {
            checker.destroy();
        }
        answer.violations.sort(Comparator.comparing(Violation::path).thenComparing(Violation::line)
                .thenComparing(Violation::rule).thenComparing(Violation::message));
        return answer;
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }

    private record Collector(Answer answer, Map<String, String> paths) implements AuditListener {
        @Override
        public void addError(AuditEvent event) {
            String source = event.getSourceName();
            String rule = source.substring(source.lastIndexOf('.') + 1).replaceFirst("Check$", "");
            if (rule.equals("Checker") || rule.equals("TreeWalker")) {
                answer.unreadable.add(paths.get(event.getFileName()));
            } else {
                answer.violations.add(
                        new Violation(paths.get(event.getFileName()), event.getLine(), rule, event.getMessage()));
            }
        }

        @Override
        public void addException(AuditEvent event, Throwable error) {
            answer.unreadable.add(paths.get(event.getFileName()));
        }

        @Override
        public void auditStarted(AuditEvent event) {}

        @Override
        public void auditFinished(AuditEvent event) {}

        @Override
        public void fileStarted(AuditEvent event) {}

        @Override
        public void fileFinished(AuditEvent event) {}
    }
}
