import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import gr.uom.java.xmi.diff.CodeRange;
import gr.uom.java.xmi.diff.UMLModelDiff;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.eclipse.jgit.errors.MissingObjectException;
import org.eclipse.jgit.lib.ObjectId;
import org.eclipse.jgit.lib.Repository;
import org.eclipse.jgit.revwalk.RevCommit;
import org.eclipse.jgit.revwalk.RevWalk;
import org.eclipse.jgit.storage.file.FileRepositoryBuilder;
import org.refactoringminer.api.PurityCheckResult;
import org.refactoringminer.api.PurityChecker;
import org.refactoringminer.api.Refactoring;
import org.refactoringminer.api.RefactoringHandler;
import org.refactoringminer.rm1.GitHistoryRefactoringMinerImpl;
import org.refactoringminer.util.GitServiceImpl;

/**
 * Answers requests for refactorings, with the protocol of java/worker/program.py.
 *
 * <p>A request has "purity" and one of: "git_dir" and "commit" (compared with its first parent), "before" and
 * "after" as the paths of two folders, or "before" and "after" as objects of texts by path. It compiles against
 * RefactoringMiner 3.0.10, where the handler is a class, and 3.1.4, where it is an interface.
 */
public class RefactoringMinerWorker extends GitHistoryRefactoringMinerImpl {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The last repository: opening one reads all of its pack indexes. */
    private Repository repository;

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err); // libraries print
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> readLines(lines));
        reader.setDaemon(true);
        reader.start();
        RefactoringMinerWorker worker = new RefactoringMinerWorker();
        answers.print("{\"ready\": true}\n");
        answers.flush();
        while (true) {
            String line = lines.take();
            ObjectNode reply = JSON.createObjectNode();
            reply.put("id", idOf(line));
            try {
                reply.set("answer", worker.answer(JSON.readTree(line)));
            } catch (OutOfMemoryError error) {
                throw error;
            } catch (Throwable error) { // deep expressions overflow the stack
                reply.put("error", describe(error));
            }
            answers.print(JSON.writeValueAsString(reply) + "\n");
            answers.flush();
        }
    }

    /** Returns the id of a request, its first field. The rest is not read: Jackson refuses texts over 20 MB. */
    private static int idOf(String line) throws IOException {
        try (JsonParser parser = JSON.getFactory().createParser(line)) {
            parser.nextToken();
            parser.nextToken();
            return parser.nextIntValue(0);
        }
    }

    /** Puts lines of standard input into the queue, and ends the JVM at its end: codetaste is gone. */
    private static void readLines(BlockingQueue<String> lines) {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
            }
        } catch (IOException error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    private ObjectNode answer(JsonNode request) throws Exception {
        Collector collector = new Collector(request.path("purity").asBoolean());
        ObjectNode answer = JSON.createObjectNode();
        if (request.has("commit")) {
            answer.put("parents", detectCommit(request.get("git_dir").asText(), request.get("commit").asText(), collector));
        } else if (request.get("before").isTextual()) {
            Path before = Path.of(request.get("before").asText());
            detectAtDirectories(before, Path.of(request.get("after").asText()), collector.handler());
        } else {
            detectAtFileContents(texts(request.get("before")), texts(request.get("after")), collector.handler());
        }
        if (collector.failure != null) {
            throw collector.failure;
        }
        answer.set("refactorings", collector.refactorings);
        answer.put("purity_error", collector.purityError);
        return answer;
    }

    /** Returns the number of parents of the commit. */
    private int detectCommit(String gitDir, String name, Collector collector) throws Exception {
        Repository repository = open(gitDir);
        try (RevWalk walk = new RevWalk(repository)) {
            RevCommit commit = walk.parseCommit(ObjectId.fromString(name));
            if (repository.getObjectDatabase().getShallowCommits().contains(commit.getId())) {
                throw new IllegalArgumentException("shallow: the clone has no parent of this commit");
            }
            for (RevCommit parent : commit.getParents()) {
                walk.parseHeaders(parent);
            }
            detectRefactorings(new GitServiceImpl(), repository, collector.handler(), commit);
            return commit.getParentCount();
        } catch (MissingObjectException error) {
            throw new IllegalArgumentException("missing: the clone lacks " + error.getObjectId().getName(), error);
        }
    }

    private Repository open(String gitDir) throws IOException {
        Path path = Path.of(gitDir);
        if (repository == null || !repository.getDirectory().toPath().equals(path)) {
            if (repository != null) {
                repository.close();
            }
            repository = new FileRepositoryBuilder().setGitDir(path.toFile()).setMustExist(true).build();
        }
        return repository;
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new LinkedHashMap<>();
        object.fieldNames().forEachRemaining(name -> texts.put(name, object.get(name).asText()));
        return texts;
    }

    private static String describe(Throwable error) {
        String message = error.getMessage();
        boolean own = error instanceof IllegalArgumentException && message != null;
        String name = error.getClass().getSimpleName();
        StackTraceElement[] trace = error.getStackTrace();
        String place = trace.length == 0 ? "" : " at " + trace[0];
        return own ? message : name + (message == null ? "" : ": " + message) + place;
    }

    /** Turns what RefactoringMiner reports into JSON. */
    private static final class Collector {
        private final boolean purity;
        private final ArrayNode refactorings = JSON.createArrayNode();
        private Exception failure;
        private String purityError;

        Collector(boolean purity) {
            this.purity = purity;
        }

        RefactoringHandler handler() {
            return new RefactoringHandler() {
                @Override
                public void handle(String id, List<Refactoring> found) {
                    // Everything is in handleModelDiff.
                }

                @Override
                public void handleModelDiff(String id, List<Refactoring> found, UMLModelDiff diff) {
                    Map<Refactoring, PurityCheckResult> verdicts = purity ? check(found, diff) : Map.of();
                    for (Refactoring each : found) {
                        refactorings.add(toJson(each, verdicts.get(each)));
                    }
                }

                @Override
                public void handleException(String id, Exception error) {
                    failure = error;
                }
            };
        }

        private Map<Refactoring, PurityCheckResult> check(List<Refactoring> found, UMLModelDiff diff) {
            Map<Refactoring, PurityCheckResult> verdicts = new IdentityHashMap<>();
            for (Refactoring each : found) {
                try {
                    verdicts.put(each, PurityChecker.check(each, found, diff));
                } catch (RuntimeException | StackOverflowError error) {
                    purityError = describe(error);
                }
            }
            return verdicts;
        }

        private static ObjectNode toJson(Refactoring refactoring, PurityCheckResult verdict) {
            ObjectNode node = JSON.createObjectNode();
            node.put("type", refactoring.getName());
            node.put("description", refactoring.toString().replace('\t', ' ')); // as in its own JSON
            node.set("left", toJson(refactoring.leftSide()));
            node.set("right", toJson(refactoring.rightSide()));
            if (verdict != null) {
                ObjectNode purity = node.putObject("purity");
                purity.put("pure", verdict.isPure());
                purity.put("description", verdict.getDescription());
                purity.put("comment", verdict.getPurityComment());
                purity.put("mapping_state", verdict.getMappingState());
            }
            return node;
        }

        private static ArrayNode toJson(List<CodeRange> ranges) {
            ArrayNode array = JSON.createArrayNode();
            for (CodeRange range : ranges) {
                ObjectNode node = array.addObject();
                node.put("path", range.getFilePath());
                node.put("start_line", range.getStartLine());
                node.put("end_line", range.getEndLine());
                node.put("start_column", range.getStartColumn());
                node.put("end_column", range.getEndColumn());
                node.put("element_kind", range.getCodeElementType().name());
                node.put("description", range.getDescription());
                node.put("code_element", range.getCodeElement());
            }
            return array;
        }
    }
}
