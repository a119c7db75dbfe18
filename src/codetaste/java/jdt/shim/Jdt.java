import com.google.gson.FieldNamingPolicy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.ref.SoftReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Stream;
import org.eclipse.jdt.core.JavaCore;
import org.eclipse.jdt.core.ToolFactory;
import org.eclipse.jdt.core.compiler.CategorizedProblem;
import org.eclipse.jdt.core.compiler.IProblem;
import org.eclipse.jdt.core.compiler.IScanner;
import org.eclipse.jdt.core.compiler.ITerminalSymbols;
import org.eclipse.jdt.core.compiler.InvalidInputException;
import org.eclipse.jdt.core.dom.*;
import org.eclipse.jdt.internal.core.dom.NaiveASTFlattener;

/**
 * Eclipse JDT behind one JSON request a line of standard input and one JSON answer a line of standard output.
 *
 * <p>Operation "enrich": what surrounds methods of a source tree on disk, with bindings and without a build.
 * Operation "index": all types, methods and calls of a source tree.
 * Operation "parse": the types and methods of Java texts, syntax alone.
 * Answers have the names of codetaste.java.jdt.model and codetaste.java.jdt.source_index.
 */
public final class Jdt {
    private static final Gson GSON = new GsonBuilder()
            .setFieldNamingPolicy(FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES)
            .disableHtmlEscaping()
            .serializeNulls()
            .create();
    private static final long STACK_BYTES = 512L << 20; // generated code nests deeply

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
            JsonObject request = GSON.fromJson(line, JsonObject.class);
            answer.add("id", request.get("id"));
            Object found = switch (request.get("op").getAsString()) {
                case "enrich" -> Enrichment.enrich(GSON.fromJson(line, EnrichRequest.class));
                case "index" -> Indexing.index(GSON.fromJson(line, IndexRequest.class));
                case "parse" -> Syntax.parse(GSON.fromJson(line, ParseRequest.class));
                default -> throw new IllegalArgumentException("unknown op " + request.get("op"));
            };
            answer.add("answer", GSON.toJsonTree(found));
        } catch (Throwable error) { // an error without an answer would cost the whole time-out
            answer.addProperty("error", error.toString());
        }
        return GSON.toJson(answer);
    }

    // ---- requests and answers -------------------------------------------------------------------------

    record EnrichRequest(String root, List<String> classPath, String level, List<Target> targets) {}

    /** A method by its file and lines, its name, or both; lines as of RefactoringMiner, with Javadoc. */
    record Target(String path, int startLine, int endLine, String name, String owner) {}

    /** near is a folder: of files with one package and name the nearest to it counts. */
    record IndexRequest(String root, String near) {}

    record ParseRequest(Map<String, String> contents) {}

    record Problem(String path, int line, String kind, String message) {}

    record Module(String name, String path) {}

    record Structure(List<String> javaFiles, Map<String, Integer> sourceRoots, List<Module> modules,
            List<String> generatedFiles) {}

    record Counts(int files, int types, int methods, int calls, int resolvedCalls, double seconds) {}

    record TypeView(String name, String binaryName, String kind, String signature, String path, int startLine,
            int endLine, String source) {}

    record MethodView(String owner, String name, String signature, String descriptor, List<String> parameters,
            String path, int startLine, int endLine, String source) {}

    /** One type above or below: relation is extends or implements, origin is source, library or unresolved. */
    record Relative(String name, String relation, boolean direct, String origin, String path, int startLine,
            int endLine) {}

    /** A member with calls of the target: direct, overridden (of a method that it overrides) or unresolved. */
    record Caller(String relation, String path, List<Integer> lines, String member, MethodView method) {}

    /** One method that the target calls; origin is source, library or unresolved. */
    record Callee(String name, String owner, String kind, List<String> parameters, String origin, List<Integer> lines,
            MethodView method) {}

    record SourceFile(String path, String source) {}

    record Answer(Target target, String outcome, String message, String level, MethodView method, TypeView type,
            List<String> enclosingTypes, List<Relative> parents, List<Relative> children, List<String> overrides,
            List<String> overriddenBy, List<Caller> callers, List<Callee> callees, List<SourceFile> packageSources,
            List<String> leftOutFiles, Counts counts) {}

    record Enriched(Structure structure, List<Problem> problems, List<Answer> targets) {}

    record IndexedType(String name, String kind, String path, int startLine, int endLine) {}

    /** overrides are numbers of methods. */
    record IndexedMethod(String owner, String name, List<String> parameters, String path, int startLine, int endLine,
            List<Integer> overrides) {}

    /** caller and callee are numbers of methods, -1 for a member that is no method, or a callee without source. */
    record IndexedCall(int caller, String member, String path, int line, int callee, String owner, String name,
            int arguments) {}

    record SourceIndex(List<IndexedType> types, List<IndexedMethod> methods, List<IndexedCall> calls,
            List<String> leftOutFiles, Counts counts) {}

    record ParsedMethod(String name, String signature, int startLine, int endLine, String body, List<String> calls) {}

    record ParsedType(String path, String name, String packageName, String signature, int startLine, int endLine,
            List<ParsedMethod> methods) {}

    record Parsed(List<ParsedType> types, List<Problem> problems) {}

    // ---- the tree --------------------------------------------------------------------------------------

    /** The Java files below a folder, with the source root that the package of each one gives. */
    private static final class Tree {
        private static final String GENERATED = "(?s)@(?:[\\w.]*\\.)?Generated\\b|(?i:\\bgenerated by\\b)";
        final Path folder;
        final List<String> files = new ArrayList<>();
        final Map<String, String> packages = new HashMap<>();
        final Map<String, String> roots = new HashMap<>(); // of files whose folder is that of their package
        final List<Module> modules = new ArrayList<>();
        final List<String> generated = new ArrayList<>();
        final List<Problem> problems = new ArrayList<>();
        private final java.util.regex.Pattern header = java.util.regex.Pattern.compile(GENERATED);

        Tree(Path folder) throws IOException {
            this.folder = folder;
            try (Stream<Path> paths = Files.walk(folder)) {
                paths.filter(path -> path.toString().endsWith(".java"))
                        .filter(path -> Files.isRegularFile(path, java.nio.file.LinkOption.NOFOLLOW_LINKS))
                        .map(path -> folder.relativize(path).toString())
                        .filter(path -> !path.startsWith(".git/"))
                        .sorted()
                        .forEach(files::add);
            }
            files.removeIf(path -> {
                boolean lost = !Files.exists(folder.resolve(path));
                if (lost) { // a name that is not UTF-8 leads nowhere as text
                    problems.add(new Problem(path, 0, "encoding", "its name is not UTF-8"));
                }
                return lost;
            });
            for (String path : files) {
                String text = text(path);
                if (text.indexOf('\ufffd') >= 0) {
                    problems.add(new Problem(path, 0, "encoding", "not all of it is UTF-8"));
                }
                if (path.endsWith("module-info.java")) {
                    addModule(path, text);
                    continue;
                }
                place(path, text);
            }
        }

        private void addModule(String path, String text) {
            ASTParser parser = Syntax.parser(text, JavaCore.latestSupportedJavaVersion());
            parser.setUnitName("module-info.java");
            ModuleDeclaration module = ((CompilationUnit) parser.createAST(null)).getModule();
            if (module == null) {
                problems.add(new Problem(path, 0, "syntax", "no module declaration"));
            } else {
                modules.add(new Module(module.getName().getFullyQualifiedName(), path));
            }
        }

        private void place(String path, String text) {
            int[] bodyAt = {Math.min(text.length(), 4000)};
            String name = packageOf(text, bodyAt);
            packages.put(path, name);
            if (header.matcher(text.substring(0, Math.min(bodyAt[0], text.length()))).find()) {
                generated.add(path);
            }
            String parent = path.contains("/") ? path.substring(0, path.lastIndexOf('/')) : "";
            String below = name.replace('.', '/');
            if (below.isEmpty() || parent.equals(below)) {
                roots.put(path, below.isEmpty() ? parent : "");
            } else if (parent.endsWith("/" + below)) {
                roots.put(path, parent.substring(0, parent.length() - below.length() - 1));
            }
        }

        /** The package that a text declares, "" for none; bodyAt gets where its first type begins. */
        private static String packageOf(String text, int[] bodyAt) {
            IScanner scanner = ToolFactory.createScanner(false, false, false, JavaCore.latestSupportedJavaVersion());
            scanner.setSource(text.toCharArray());
            StringBuilder name = null;
            String found = "";
            int depth = 0;
            try {
                for (int token = scanner.getNextToken(); ; token = scanner.getNextToken()) {
                    switch (token) {
                        case ITerminalSymbols.TokenNameLPAREN -> depth++;
                        case ITerminalSymbols.TokenNameRPAREN -> depth--;
                        case ITerminalSymbols.TokenNamepackage -> name = new StringBuilder();
                        case ITerminalSymbols.TokenNameSEMICOLON -> {
                            found = name == null ? found : name.toString();
                            name = null;
                        }
                        case ITerminalSymbols.TokenNameEOF, ITerminalSymbols.TokenNameLBRACE -> {
                            if (depth == 0 || token == ITerminalSymbols.TokenNameEOF) {
                                bodyAt[0] = scanner.getCurrentTokenStartPosition();
                                return found;
                            }
                        }
                        default -> {
                            if (name != null) {
                                name.append(scanner.getCurrentTokenSource());
                            }
                        }
                    }
                }
            } catch (InvalidInputException error) {
                return found; // the parser names what is wrong
            }
        }

        String text(String path) {
            try {
                return Syntax.withoutMark(new String(Files.readAllBytes(folder.resolve(path)), StandardCharsets.UTF_8));
            } catch (IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        Structure structure() {
            Map<String, Integer> counts = new TreeMap<>();
            roots.values().forEach(root -> counts.merge(root, 1, Integer::sum));
            return new Structure(files, counts, modules, generated);
        }

        /**
         * The files that are compiled with one file. Of files with one package and name the nearest counts, and a
         * source root half of whose files are elsewhere is left out: it is a variant of a nearer one.
         */
        SourceSet sourceSet(String target) {
            String near = roots.getOrDefault(target, target);
            SourceSet set = new SourceSet(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
            Map<String, List<String>> byRoot = new HashMap<>();
            for (String path : files) {
                if (packages.containsKey(path) && !path.endsWith("package-info.java")) {
                    byRoot.computeIfAbsent(roots.get(path), any -> new ArrayList<>()).add(path);
                }
            }
            List<String> unplaced = byRoot.getOrDefault(null, new ArrayList<>());
            byRoot.remove(null);
            Set<String> units = new HashSet<>();
            if (unplaced.remove(target)) {
                units.add(unit(target));
                set.files.add(target);
            }
            List<String> order = new ArrayList<>(byRoot.keySet());
            order.sort(Comparator.comparingInt((String root) -> root.equals(near) ? -1 : 0)
                    .thenComparingInt(root -> -common(near, root)).thenComparing(root -> root));
            for (String root : order) {
                List<String> inside = byRoot.get(root);
                long repeated = inside.stream().filter(path -> units.contains(unit(path))).count();
                if (2 * repeated >= inside.size()) {
                    set.leftOut.addAll(inside);
                } else {
                    set.roots.add(root);
                    inside.forEach(path -> (units.add(unit(path)) ? set.files : set.leftOut).add(path));
                }
            }
            unplaced.forEach(path -> (units.add(unit(path)) ? set.files : set.leftOut).add(path));
            return set;
        }

        private String unit(String path) {
            return packages.get(path) + "/" + path.substring(path.lastIndexOf('/') + 1);
        }

        private static int common(String one, String other) {
            String[] parts = one.split("/"), others = other.split("/");
            int index = 0;
            while (index < Math.min(parts.length, others.length) && parts[index].equals(others[index])) {
                index++;
            }
            return index;
        }
    }

    private record SourceSet(List<String> roots, List<String> files, List<String> leftOut) {}

    // ---- the index -------------------------------------------------------------------------------------

    private record Super(String key, String name, String relation, boolean resolved) {}

    private static final class TypeInfo {
        String key, name, binaryName, kind, signature, path;
        int start, length, startLine, endLine;
        final List<String> enclosing = new ArrayList<>();
        final List<Super> supers = new ArrayList<>();
    }

    private static final class MethodInfo {
        String key, owner, name, signature, descriptor, path;
        List<String> parameters;
        int start, length, startLine, endLine;
        TypeInfo type;
        final Set<String> overrides = new LinkedHashSet<>();
    }

    private record CalleeInfo(String key, String owner, List<String> parameters, boolean fromSource) {}

    /** callee is null if unresolved; member is the method of a named type around the call, or null. */
    private record Call(String name, String kind, int arguments, CalleeInfo callee, String path, int position, int line,
            MethodInfo member, String memberText) {}

    /** All types, methods and calls of a source set. */
    private static final class Index {
        final Tree tree;
        final SourceSet set;
        final String level;
        final Map<String, TypeInfo> types = new LinkedHashMap<>();
        final Map<String, MethodInfo> methods = new LinkedHashMap<>();
        final Map<String, List<TypeInfo>> subtypes = new HashMap<>();
        final Map<String, List<MethodInfo>> methodsOf = new HashMap<>();
        final Map<String, List<Call>> callsTo = new HashMap<>();
        final Map<String, List<Call>> callsIn = new HashMap<>();
        final Map<String, List<Call>> unresolved = new HashMap<>();
        final Map<String, CalleeInfo> callees = new HashMap<>();
        final Map<String, Problem> problems = new LinkedHashMap<>(); // the first of each file
        Counts counts;

        Index(Tree tree, SourceSet set, List<String> classPath, String level) {
            this.tree = tree;
            this.set = set;
            this.level = level;
            long start = System.nanoTime();
            add(set.files, classPath);
            int total = callsIn.values().stream().mapToInt(List::size).sum();
            int failed = unresolved.values().stream().mapToInt(List::size).sum();
            double seconds = (System.nanoTime() - start) / 1e9;
            counts = new Counts(set.files.size(), types.size(), methods.size(), total, total - failed, seconds);
        }

        /** Index files together; if the engine fails on one of them, in halves, so that the others are indexed. */
        private void add(List<String> files, List<String> classPath) {
            Set<String> left = new LinkedHashSet<>(files);
            try {
                resolve(files, classPath, left);
            } catch (RuntimeException | StackOverflowError error) {
                List<String> rest = new ArrayList<>(left);
                if (rest.size() == 1) {
                    problems.putIfAbsent(rest.get(0), new Problem(rest.get(0), 0, "engine", error.toString()));
                } else if (!rest.isEmpty()) {
                    add(rest.subList(0, rest.size() / 2), classPath);
                    add(rest.subList(rest.size() / 2, rest.size()), classPath);
                }
            }
        }

        private void resolve(List<String> files, List<String> classPath, Set<String> left) {
            ASTParser parser = ASTParser.newParser(AST.getJLSLatest());
            parser.setKind(ASTParser.K_COMPILATION_UNIT);
            parser.setCompilerOptions(Syntax.options(level));
            parser.setResolveBindings(true);
            parser.setBindingsRecovery(true);
            parser.setStatementsRecovery(true);
            String[] roots = set.roots.stream().map(root -> tree.folder.resolve(root).toString()).toArray(String[]::new);
            parser.setEnvironment(classPath.toArray(String[]::new), roots, utf8(roots.length), true);
            Map<String, String> names = new HashMap<>();
            files.forEach(path -> names.put(tree.folder.resolve(path).toString(), path));
            String[] paths = files.stream().map(path -> tree.folder.resolve(path).toString()).toArray(String[]::new);
            parser.createASTs(paths, utf8(paths.length), new String[0], new FileASTRequestor() {
                @Override
                public void acceptAST(String file, CompilationUnit unit) {
                    String path = names.get(file);
                    left.remove(path);
                    Syntax.firstProblem(path, unit).ifPresent(problem -> problems.put(path, problem));
                    unit.accept(new Collector(Index.this, path, unit, tree.text(path)));
                }
            }, null);
        }

        private static String[] utf8(int size) {
            String[] encodings = new String[size];
            java.util.Arrays.fill(encodings, "UTF-8");
            return encodings;
        }

        String source(String path, int start, int length) {
            String text = tree.text(path);
            return text.substring(Math.min(start, text.length()), Math.min(start + length, text.length()));
        }
    }

    /** Adds the types, methods and calls of one compilation unit to the index. */
    private static final class Collector extends ASTVisitor {
        private static final Set<String> IMPLICIT = Set.of("java.lang.Object", "java.lang.Enum", "java.lang.Record");
        private final Index index;
        private final String path;
        private final CompilationUnit unit;
        private final String text;
        private final Map<ASTNode, TypeInfo> types = new HashMap<>();
        private final Map<ASTNode, MethodInfo> methods = new HashMap<>();

        Collector(Index index, String path, CompilationUnit unit, String text) {
            this.index = index;
            this.path = path;
            this.unit = unit;
            this.text = text;
        }

        @Override
        public void preVisit(ASTNode node) {
            if (node instanceof AbstractTypeDeclaration type) {
                addType(node, type.resolveBinding(), Syntax.typeName(type), Syntax.kind(type),
                        Syntax.signature(type, text).strip());
            } else if (node instanceof AnonymousClassDeclaration anonymous) {
                ITypeBinding binding = anonymous.resolveBinding();
                addType(node, binding, enclosingName(node) + ".<anonymous>", "anonymous", "");
            } else if (node instanceof MethodDeclaration method) {
                addMethod(method);
            }
        }

        private String enclosingName(ASTNode node) {
            TypeInfo outer = enclosingType(node);
            return outer == null ? "" : outer.name;
        }

        private TypeInfo enclosingType(ASTNode node) {
            for (ASTNode each = node.getParent(); each != null; each = each.getParent()) {
                if (types.containsKey(each)) {
                    return types.get(each);
                }
            }
            return null;
        }

        private void addType(ASTNode node, ITypeBinding binding, String name, String kind, String signature) {
            TypeInfo type = new TypeInfo();
            type.key = binding == null ? path + ":" + node.getStartPosition() : binding.getTypeDeclaration().getKey();
            type.binaryName = binding == null ? null : binding.getBinaryName();
            type.name = name.isEmpty() && type.binaryName != null ? type.binaryName : name; // of an implicit class
            type.kind = kind;
            type.signature = signature;
            type.path = path;
            type.start = node.getStartPosition();
            type.length = node.getLength();
            type.startLine = unit.getLineNumber(type.start);
            type.endLine = unit.getLineNumber(type.start + Math.max(type.length - 1, 0));
            TypeInfo outer = enclosingType(node);
            if (outer != null) {
                type.enclosing.addAll(outer.enclosing);
                type.enclosing.add(outer.name);
            }
            if (binding != null) {
                ITypeBinding above = binding.getSuperclass();
                if (above != null && !IMPLICIT.contains(above.getErasure().getQualifiedName())) {
                    addSuper(type, above, "extends");
                }
                for (ITypeBinding each : binding.getInterfaces()) {
                    addSuper(type, each, binding.isInterface() ? "extends" : "implements");
                }
            }
            types.put(node, type);
            index.types.putIfAbsent(type.key, type);
        }

        private void addSuper(TypeInfo type, ITypeBinding above, String relation) {
            ITypeBinding declared = above.getTypeDeclaration();
            String name = declared.getQualifiedName().isEmpty() ? declared.getName() : declared.getQualifiedName();
            type.supers.add(new Super(declared.getKey(), name, relation, !declared.isRecovered()));
            index.subtypes.computeIfAbsent(declared.getKey(), any -> new ArrayList<>()).add(type);
        }

        private void addMethod(MethodDeclaration node) {
            IMethodBinding binding = node.resolveBinding();
            MethodInfo method = new MethodInfo();
            method.type = enclosingType(node);
            method.owner = enclosingName(node);
            method.name = node.getName().getIdentifier();
            method.signature = Syntax.signature(node, text).strip();
            method.path = path;
            method.start = node.getStartPosition();
            method.length = node.getLength();
            method.startLine = unit.getLineNumber(method.start);
            method.endLine = unit.getLineNumber(method.start + Math.max(method.length - 1, 0));
            method.parameters = binding == null ? Syntax.parameterTexts(node) : parameterNames(binding);
            method.key = binding == null ? path + ":" + method.start : binding.getKey();
            method.descriptor = binding == null ? null : descriptor(binding);
            if (binding != null && !binding.isConstructor() && (node.getModifiers() & (Modifier.STATIC | Modifier.PRIVATE)) == 0) {
                addOverridden(method, binding, binding.getDeclaringClass(), new HashSet<>());
            }
            methods.put(node, method);
            index.methods.putIfAbsent(method.key, method);
            index.methodsOf.computeIfAbsent(path, any -> new ArrayList<>()).add(method);
        }

        private static void addOverridden(MethodInfo method, IMethodBinding binding, ITypeBinding type, Set<String> seen) {
            List<ITypeBinding> above = new ArrayList<>(List.of(type.getInterfaces()));
            if (type.getSuperclass() != null) {
                above.add(type.getSuperclass());
            }
            for (ITypeBinding each : above) {
                if (!seen.add(each.getKey())) {
                    continue;
                }
                for (IMethodBinding other : each.getDeclaredMethods()) {
                    if (other.getName().equals(binding.getName()) && binding.overrides(other)) {
                        method.overrides.add(other.getMethodDeclaration().getKey());
                    }
                }
                addOverridden(method, binding, each, seen);
            }
        }

        private static List<String> parameterNames(IMethodBinding binding) {
            return Stream.of(binding.getParameterTypes()).map(ITypeBinding::getQualifiedName).toList();
        }

        /** The descriptor in the class file, with the parameters that a compiler adds to constructors. */
        private static String descriptor(IMethodBinding binding) {
            StringBuilder all = new StringBuilder("(");
            ITypeBinding owner = binding.getDeclaringClass();
            if (binding.isConstructor() && owner.isEnum()) {
                all.append("Ljava/lang/String;I");
            } else if (binding.isConstructor() && owner.isMember() && !Modifier.isStatic(owner.getModifiers())) {
                all.append(descriptor(owner.getDeclaringClass()));
            }
            for (ITypeBinding each : binding.getParameterTypes()) {
                all.append(descriptor(each));
            }
            return all.append(')').append(binding.isConstructor() ? "V" : descriptor(binding.getReturnType())).toString();
        }

        private static String descriptor(ITypeBinding type) {
            ITypeBinding erased = type.getErasure();
            String name = erased.getBinaryName();
            if (name == null) {
                return "L" + erased.getQualifiedName().replace('.', '/') + ";";
            }
            name = name.replace('.', '/');
            return erased.isPrimitive() || erased.isArray() ? name : "L" + name + ";";
        }

        @Override
        public boolean visit(MethodInvocation node) {
            return add(node, node.getName(), "call", node.arguments().size(), node.resolveMethodBinding());
        }

        @Override
        public boolean visit(SuperMethodInvocation node) {
            return add(node, node.getName(), "super_call", node.arguments().size(), node.resolveMethodBinding());
        }

        @Override
        public boolean visit(ConstructorInvocation node) {
            return add(node, null, "constructor", node.arguments().size(), node.resolveConstructorBinding());
        }

        @Override
        public boolean visit(SuperConstructorInvocation node) {
            return add(node, null, "constructor", node.arguments().size(), node.resolveConstructorBinding());
        }

        @Override
        public boolean visit(ClassInstanceCreation node) {
            return add(node, null, "constructor", node.arguments().size(), node.resolveConstructorBinding());
        }

        @Override
        public boolean visit(EnumConstantDeclaration node) {
            return add(node, null, "constructor", node.arguments().size(), node.resolveConstructorBinding());
        }

        @Override
        public boolean visit(ExpressionMethodReference node) {
            return add(node, node.getName(), "reference", -1, node.resolveMethodBinding());
        }

        @Override
        public boolean visit(SuperMethodReference node) {
            return add(node, node.getName(), "reference", -1, node.resolveMethodBinding());
        }

        @Override
        public boolean visit(TypeMethodReference node) {
            return add(node, node.getName(), "reference", -1, node.resolveMethodBinding());
        }

        @Override
        public boolean visit(CreationReference node) {
            return node.getType().isArrayType() || add(node, null, "reference", -1, node.resolveMethodBinding());
        }

        private boolean add(ASTNode node, SimpleName name, String kind, int arguments, IMethodBinding binding) {
            CalleeInfo callee = binding == null || binding.isRecovered() ? null : callee(binding);
            String text = name != null ? name.getIdentifier()
                    : binding != null && !binding.getName().isEmpty() ? binding.getName() : createdName(node);
            ASTNode member = member(node);
            MethodInfo method = methods.get(member);
            int position = name == null ? node.getStartPosition() : name.getStartPosition();
            Call call = new Call(text, kind, arguments, callee, path, position, unit.getLineNumber(position), method,
                    method != null ? method.owner + "#" + method.name : memberText(member));
            index.callsIn.computeIfAbsent(path, any -> new ArrayList<>()).add(call);
            if (callee == null) {
                index.unresolved.computeIfAbsent(text, any -> new ArrayList<>()).add(call);
            } else {
                index.callsTo.computeIfAbsent(callee.key, any -> new ArrayList<>()).add(call);
            }
            return true;
        }

        private CalleeInfo callee(IMethodBinding binding) {
            IMethodBinding declared = binding.getMethodDeclaration();
            return index.callees.computeIfAbsent(declared.getKey(), key -> {
                ITypeBinding owner = declared.getDeclaringClass().getErasure();
                String name = owner.getQualifiedName().isEmpty() ? owner.getBinaryName() : owner.getQualifiedName();
                return new CalleeInfo(key, name == null ? "" : name,
                        parameterNames(declared), owner.isFromSource());
            });
        }

        private static String createdName(ASTNode node) {
            if (node instanceof ClassInstanceCreation creation) {
                return simpleName(creation.getType());
            }
            return node instanceof CreationReference reference ? simpleName(reference.getType()) : "<init>";
        }

        private static String simpleName(org.eclipse.jdt.core.dom.Type type) {
            String text = type instanceof ParameterizedType generic ? generic.getType().toString() : type.toString();
            return text.substring(text.lastIndexOf('.') + 1);
        }

        /** The member of a named class that encloses a node: a method, a field, an initializer, an enum constant. */
        private static ASTNode member(ASTNode node) {
            ASTNode found = null;
            for (ASTNode each = node; each != null; each = each.getParent()) {
                if (each instanceof BodyDeclaration && !(each instanceof AbstractTypeDeclaration)
                        && each.getParent() instanceof AbstractTypeDeclaration type && !(type.getParent() instanceof TypeDeclarationStatement)) {
                    return each;
                }
                found = each;
            }
            return found;
        }

        private String memberText(ASTNode member) {
            String owner = enclosingName(member);
            if (member instanceof FieldDeclaration field && !field.fragments().isEmpty()) {
                return owner + "#" + ((VariableDeclarationFragment) field.fragments().get(0)).getName();
            }
            if (member instanceof EnumConstantDeclaration constant) {
                return owner + "#" + constant.getName();
            }
            return owner + (member instanceof Initializer ? "#<initializer>" : "");
        }
    }

    // ---- enrichment ------------------------------------------------------------------------------------

    private static final class Enrichment {
        private static final int KEPT = 2; // indexes that stay in memory while there is room
        private static final Map<List<Object>, SoftReference<Index>> INDEXES = new LinkedHashMap<>(8, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<List<Object>, SoftReference<Index>> eldest) {
                return size() > KEPT;
            }
        };

        static Enriched enrich(EnrichRequest request) throws IOException {
            Path folder = Path.of(request.root).toAbsolutePath().normalize();
            Tree tree = new Tree(folder);
            List<String> classPath = request.classPath == null ? List.of() : request.classPath;
            Map<String, Problem> problems = new LinkedHashMap<>();
            tree.problems.forEach(problem -> problems.put(problem.path, problem));
            List<Answer> answers = new ArrayList<>();
            for (Target target : request.targets) {
                if (!tree.packages.containsKey(target.path)) {
                    answers.add(without(target, "no_file", "no Java file " + target.path, null));
                    continue;
                }
                String level = request.level == null ? Syntax.level(tree.text(target.path)) : request.level;
                SourceSet set = tree.sourceSet(target.path);
                Index index = index(tree, set, classPath, level);
                if (!level.equals(Syntax.OLD_LEVEL)) { // which knows too little to judge all files
                    index.problems.values().forEach(problem -> problems.putIfAbsent(problem.path, problem));
                }
                answers.add(answer(target, index));
            }
            return new Enriched(tree.structure(), List.copyOf(problems.values()), answers);
        }

        private static Index index(Tree tree, SourceSet set, List<String> classPath, String level) throws IOException {
            List<Object> stamps = new ArrayList<>();
            for (String path : set.files) {
                Path file = tree.folder.resolve(path);
                stamps.add(List.of(path, Files.size(file), Files.getLastModifiedTime(file).toMillis()));
            }
            List<Object> key = List.of(tree.folder, classPath, level, set.roots, stamps);
            SoftReference<Index> kept = INDEXES.get(key);
            Index index = kept == null ? null : kept.get();
            if (index == null) {
                index = new Index(tree, set, classPath, level);
                INDEXES.put(key, new SoftReference<>(index));
            }
            return index;
        }

        private static Answer without(Target target, String outcome, String message, Index index) {
            return new Answer(target, outcome, message, index == null ? null : index.level, null, null, List.of(), List.of(),
                    List.of(), List.of(), List.of(), List.of(), List.of(), List.of(),
                    index == null ? List.of() : index.set.leftOut, index == null ? null : index.counts);
        }

        private static Answer answer(Target target, Index index) {
            List<MethodInfo> all = index.methodsOf.getOrDefault(target.path, List.of());
            List<MethodInfo> found = all.stream().filter(method -> matches(target, method)).toList();
            List<MethodInfo> exact = found.stream()
                    .filter(method -> method.startLine == target.startLine && method.endLine == target.endLine).toList();
            List<MethodInfo> chosen = exact.isEmpty() ? found : exact;
            Problem problem = index.problems.get(target.path);
            if (chosen.isEmpty()) {
                String message = problem == null ? "no such method in " + target.path : problem.path + ":" + problem.line + ": " + problem.message;
                return without(target, problem == null ? "no_method" : "unparsable", message, index);
            }
            if (chosen.size() > 1) {
                List<String> places = chosen.stream().map(each -> each.owner + "#" + each.name + " in lines " + each.startLine + "–" + each.endLine).toList();
                return without(target, "ambiguous", String.join("; ", places), index);
            }
            MethodInfo method = chosen.get(0);
            TypeInfo type = method.type;
            return new Answer(target, "found", problem == null ? null : problem.path + ":" + problem.line + ": " + problem.message, index.level,
                    view(index, method), view(index, type), type == null ? List.of() : type.enclosing,
                    type == null ? List.of() : parents(index, type), type == null ? List.of() : children(index, type),
                    method.overrides.stream().map(key -> describe(index, key)).sorted().toList(),
                    index.methods.values().stream().filter(other -> other.overrides.contains(method.key))
                            .map(other -> other.owner + "#" + other.name).sorted().distinct().toList(),
                    callers(index, method), callees(index, method), packageSources(index, target.path),
                    index.set.leftOut, index.counts);
        }

        private static boolean matches(Target target, MethodInfo method) {
            boolean named = target.name == null || target.name.equals(method.name);
            boolean owned = target.owner == null || target.owner.equals(method.owner);
            boolean placed = target.startLine <= 0
                    || method.startLine <= target.endLine && target.startLine <= method.endLine
                            && (target.name != null || method.startLine >= target.startLine && method.endLine <= target.endLine);
            return named && owned && placed;
        }

        private static String describe(Index index, String key) {
            MethodInfo method = index.methods.get(key);
            if (method != null) {
                return method.owner + "#" + method.name;
            }
            String[] parts = key.split("[;.(]");
            return parts.length > 1 ? parts[0].substring(1).replace('/', '.') + "#" + key.replaceAll("^[^.]*\\.|[(<].*$", "") : key;
        }

        private static TypeView view(Index index, TypeInfo type) {
            return type == null ? null : new TypeView(type.name, type.binaryName, type.kind, type.signature, type.path,
                    type.startLine, type.endLine, index.source(type.path, type.start, type.length));
        }

        private static MethodView view(Index index, MethodInfo method) {
            return method == null ? null : new MethodView(method.owner, method.name, method.signature, method.descriptor,
                    method.parameters, method.path, method.startLine, method.endLine,
                    index.source(method.path, method.start, method.length));
        }

        private static List<Relative> parents(Index index, TypeInfo type) {
            Map<String, Relative> found = new LinkedHashMap<>();
            List<TypeInfo> level = List.of(type);
            for (boolean direct = true; !level.isEmpty(); direct = false) {
                List<TypeInfo> next = new ArrayList<>();
                for (TypeInfo each : level) {
                    for (Super above : each.supers) {
                        TypeInfo source = index.types.get(above.key);
                        String origin = source != null ? "source" : above.resolved ? "library" : "unresolved";
                        if (found.putIfAbsent(above.key, relative(above.name, above.relation, direct, origin, source)) == null
                                && source != null) {
                            next.add(source);
                        }
                    }
                }
                level = next;
            }
            return List.copyOf(found.values());
        }

        private static List<Relative> children(Index index, TypeInfo type) {
            Map<TypeInfo, Relative> found = new LinkedHashMap<>();
            List<TypeInfo> level = List.of(type);
            for (boolean direct = true; !level.isEmpty(); direct = false) {
                List<TypeInfo> next = new ArrayList<>();
                for (TypeInfo each : level) {
                    for (TypeInfo below : index.subtypes.getOrDefault(each.key, List.of())) {
                        String relation = below.supers.stream().filter(above -> above.key.equals(each.key)).findFirst().get().relation;
                        if (found.putIfAbsent(below, relative(below.name, relation, direct, "source", below)) == null) {
                            next.add(below);
                        }
                    }
                }
                level = next;
            }
            return List.copyOf(found.values());
        }

        private static Relative relative(String name, String relation, boolean direct, String origin, TypeInfo source) {
            return source == null ? new Relative(name, relation, direct, origin, null, 0, 0)
                    : new Relative(source.name, relation, direct, origin, source.path, source.startLine, source.endLine);
        }

        private static List<Caller> callers(Index index, MethodInfo method) {
            Map<List<Object>, List<Call>> groups = new LinkedHashMap<>();
            group(groups, "direct", index.callsTo.getOrDefault(method.key, List.of()));
            for (String key : method.overrides) {
                group(groups, "overridden", index.callsTo.getOrDefault(key, List.of()));
            }
            group(groups, "unresolved", index.unresolved.getOrDefault(method.name, List.of()).stream()
                    .filter(call -> call.arguments < 0 || call.arguments == method.parameters.size()).toList());
            List<Caller> callers = new ArrayList<>();
            groups.forEach((key, calls) -> callers.add(new Caller((String) key.get(0), (String) key.get(1),
                    calls.stream().map(Call::line).distinct().sorted().toList(), (String) key.get(2),
                    view(index, calls.get(0).member))));
            callers.sort(Comparator.comparing(Caller::path).thenComparing(caller -> caller.lines().get(0)));
            return callers;
        }

        private static void group(Map<List<Object>, List<Call>> groups, String relation, List<Call> calls) {
            for (Call call : calls) {
                int start = call.member == null ? -1 : call.member.start; // overloads have one name
                List<Object> key = List.of(relation, call.path, call.memberText, start);
                groups.computeIfAbsent(key, any -> new ArrayList<>()).add(call);
            }
        }

        private static List<Callee> callees(Index index, MethodInfo method) {
            Map<String, List<Call>> groups = new LinkedHashMap<>();
            for (Call call : index.callsIn.getOrDefault(method.path, List.of())) {
                if (method.start <= call.position && call.position < method.start + method.length) {
                    String key = call.callee == null ? call.name + "/" + call.arguments : call.callee.key;
                    groups.computeIfAbsent(key, any -> new ArrayList<>()).add(call);
                }
            }
            List<Callee> callees = new ArrayList<>();
            for (List<Call> calls : groups.values()) {
                Call first = calls.get(0);
                CalleeInfo callee = first.callee;
                MethodInfo source = callee == null ? null : index.methods.get(callee.key);
                String origin = callee == null ? "unresolved" : source != null || callee.fromSource ? "source" : "library";
                callees.add(new Callee(first.name, callee == null ? null : callee.owner, first.kind,
                        callee == null ? List.of() : callee.parameters, origin,
                        calls.stream().map(Call::line).distinct().toList(), view(index, source)));
            }
            return callees;
        }

        private static List<SourceFile> packageSources(Index index, String path) {
            String name = index.tree.packages.get(path);
            return index.set.files.stream()
                    .filter(other -> !other.equals(path) && name.equals(index.tree.packages.get(other)))
                    .map(other -> new SourceFile(other, index.tree.text(other)))
                    .toList();
        }
    }

    // ---- the whole index -------------------------------------------------------------------------------

    private static final class Indexing {
        static SourceIndex index(IndexRequest request) throws IOException {
            Tree tree = new Tree(Path.of(request.root).toAbsolutePath().normalize());
            Index index = new Index(tree, tree.sourceSet(request.near), List.of(), JavaCore.latestSupportedJavaVersion());
            List<MethodInfo> methods = List.copyOf(index.methods.values());
            Map<String, Integer> numbers = new HashMap<>();
            methods.forEach(method -> numbers.put(method.key, numbers.size()));
            List<IndexedCall> calls = new ArrayList<>();
            index.callsIn.values().forEach(all -> all.forEach(call -> calls.add(view(call, numbers))));
            calls.sort(Comparator.comparing(IndexedCall::path).thenComparing(IndexedCall::line));
            return new SourceIndex(
                    index.types.values().stream().filter(type -> !type.kind.equals("anonymous"))
                            .map(type -> new IndexedType(type.name, type.kind, type.path, type.startLine, type.endLine)).toList(),
                    methods.stream().map(method -> view(method, numbers)).toList(), calls, index.set.leftOut, index.counts);
        }

        private static IndexedMethod view(MethodInfo method, Map<String, Integer> numbers) {
            return new IndexedMethod(method.owner, method.name, method.parameters, method.path, method.startLine,
                    method.endLine, method.overrides.stream().filter(numbers::containsKey).map(numbers::get).toList());
        }

        private static IndexedCall view(Call call, Map<String, Integer> numbers) {
            int caller = call.member == null ? -1 : numbers.getOrDefault(call.member.key, -1);
            int callee = call.callee == null ? -1 : numbers.getOrDefault(call.callee.key, -1);
            return new IndexedCall(caller, call.memberText, call.path, call.line, callee,
                    call.callee == null ? null : call.callee.owner, call.name, call.arguments);
        }
    }

    // ---- syntax ----------------------------------------------------------------------------------------

    private static final class Syntax {
        static Map<String, String> options(String level) {
            Map<String, String> options = JavaCore.getOptions();
            JavaCore.setComplianceOptions(level, options);
            return options;
        }

        static ASTParser parser(String text, String level) {
            ASTParser parser = ASTParser.newParser(AST.getJLSLatest());
            parser.setKind(ASTParser.K_COMPILATION_UNIT);
            parser.setCompilerOptions(options(level));
            parser.setStatementsRecovery(true);
            parser.setSource(text.toCharArray());
            return parser;
        }

        static final String OLD_LEVEL = "1.8";

        /** The newest level, or the old one for a text that only the old language allows, say with a method "yield". */
        static String level(String text) {
            String newest = JavaCore.latestSupportedJavaVersion();
            boolean parsed = firstProblem("", (CompilationUnit) parser(text, newest).createAST(null)).isEmpty();
            return parsed || firstProblem("", (CompilationUnit) parser(text, OLD_LEVEL).createAST(null)).isPresent() ? newest
                    : OLD_LEVEL;
        }

        static java.util.Optional<Problem> firstProblem(String path, CompilationUnit unit) {
            return Stream.of(unit.getProblems())
                    .filter(problem -> problem.isError() && ((CategorizedProblem) problem).getCategoryID() == CategorizedProblem.CAT_SYNTAX)
                    .min(Comparator.comparingInt(IProblem::getSourceLineNumber))
                    .map(problem -> new Problem(path, problem.getSourceLineNumber(), "syntax", problem.getMessage()));
        }

        /** The text without the byte order mark, which JDT takes for a syntax error. */
        static String withoutMark(String text) {
            return text.startsWith("\ufeff") ? text.substring(1) : text;
        }

        static Parsed parse(ParseRequest request) {
            List<ParsedType> types = new ArrayList<>();
            List<Problem> problems = new ArrayList<>();
            new TreeMap<>(request.contents).forEach((path, content) -> {
                String text = withoutMark(content);
                CompilationUnit unit = (CompilationUnit) parser(text, level(text)).createAST(null);
                firstProblem(path, unit).ifPresent(problems::add);
                unit.accept(new ASTVisitor() {
                    @Override
                    public void preVisit(ASTNode node) {
                        if (node instanceof AbstractTypeDeclaration type) {
                            types.add(parsed(path, text, unit, type));
                        }
                    }
                });
            });
            return new Parsed(types, problems);
        }

        private static ParsedType parsed(String path, String text, CompilationUnit unit, AbstractTypeDeclaration type) {
            List<ParsedMethod> methods = new ArrayList<>();
            for (Object each : type.bodyDeclarations()) {
                if (each instanceof MethodDeclaration method) {
                    Block body = method.getBody();
                    methods.add(new ParsedMethod(method.getName().getIdentifier(), signature(method, text),
                            unit.getLineNumber(method.getStartPosition()), lastLine(unit, method),
                            body == null ? null : new StatementText().of(body), body == null ? List.of() : calledNames(body)));
                }
            }
            String name = typeName(type);
            String packageName = name.contains(".") ? name.substring(0, name.lastIndexOf('.')) : "";
            return new ParsedType(path, name, packageName, signature(type, text), unit.getLineNumber(type.getStartPosition()),
                    lastLine(unit, type), methods);
        }

        private static int lastLine(CompilationUnit unit, ASTNode node) {
            return unit.getLineNumber(node.getStartPosition() + Math.max(node.getLength() - 1, 0));
        }

        private static List<String> calledNames(Block body) {
            Set<String> names = new LinkedHashSet<>();
            body.accept(new ASTVisitor() {
                @Override
                public boolean visit(MethodInvocation node) {
                    return names.add(node.getName().getIdentifier()) || true;
                }

                @Override
                public boolean visit(SuperMethodInvocation node) {
                    return names.add(node.getName().getIdentifier()) || true;
                }

                @Override
                public void preVisit(ASTNode node) {
                    SimpleName name = node instanceof ExpressionMethodReference one ? one.getName()
                            : node instanceof SuperMethodReference two ? two.getName()
                            : node instanceof TypeMethodReference three ? three.getName() : null;
                    if (name != null) {
                        names.add(name.getIdentifier());
                    }
                }
            });
            return List.copyOf(names);
        }

        /** The package and the names of the types around it, of a local class of the methods too, joined by dots. */
        static String typeName(AbstractTypeDeclaration type) {
            StringBuilder name = new StringBuilder(type.getName().getIdentifier());
            for (ASTNode node = type.getParent(); node != null; node = node.getParent()) {
                if (node instanceof AbstractTypeDeclaration outer) {
                    name.insert(0, outer.getName().getIdentifier() + ".");
                } else if (node instanceof MethodDeclaration method) {
                    name.insert(0, method.getName().getIdentifier() + ".");
                } else if (node instanceof CompilationUnit unit && unit.getPackage() != null) {
                    name.insert(0, unit.getPackage().getName().getFullyQualifiedName() + ".");
                }
            }
            return name.toString();
        }

        static String kind(AbstractTypeDeclaration type) {
            if (type instanceof TypeDeclaration plain) {
                return plain.isInterface() ? "interface" : "class";
            }
            return type instanceof EnumDeclaration ? "enum" : type instanceof RecordDeclaration ? "record"
                    : type instanceof AnnotationTypeDeclaration ? "annotation" : "class";
        }

        /** The text from the first modifier to before the brace, as RefactoringMiner's class signature. */
        static String signature(AbstractTypeDeclaration type, String text) {
            int start = firstModifier(type.modifiers(), type.getName().getStartPosition());
            int end = type.bodyDeclarations().isEmpty() ? type.getStartPosition() + type.getLength()
                    : ((ASTNode) type.bodyDeclarations().get(0)).getStartPosition();
            String found = text.substring(Math.min(start, text.length()), Math.max(start, Math.min(end, text.length())));
            found = found.contains("{") ? found.substring(0, found.indexOf('{')) : found;
            String keyword = type instanceof AnnotationTypeDeclaration ? "@interface" : kind(type);
            return found.contains(keyword + " ") ? found : keyword + " " + found;
        }

        /** The text from the first modifier to the brace, as RefactoringMiner's method signature. */
        static String signature(MethodDeclaration method, String text) {
            ASTNode next = !method.typeParameters().isEmpty() ? (ASTNode) method.typeParameters().get(0)
                    : method.getReturnType2() != null ? method.getReturnType2() : method.getName();
            int start = firstModifier(method.modifiers(), next.getStartPosition());
            int end = method.getBody() != null ? method.getBody().getStartPosition() + 1
                    : method.getStartPosition() + method.getLength();
            return text.substring(Math.min(start, text.length()), Math.max(start, Math.min(end, text.length())));
        }

        private static int firstModifier(List<?> modifiers, int otherwise) {
            return modifiers.stream().filter(Modifier.class::isInstance).map(ASTNode.class::cast).findFirst()
                    .map(ASTNode::getStartPosition).orElse(otherwise);
        }

        static List<String> parameterTexts(MethodDeclaration method) {
            List<String> texts = new ArrayList<>();
            for (Object each : method.parameters()) {
                SingleVariableDeclaration parameter = (SingleVariableDeclaration) each;
                texts.add(parameter.getType() + (parameter.isVarargs() ? "[]" : ""));
            }
            return texts;
        }
    }

    /**
     * Statements as RefactoringMiner writes them, which the published callee bodies have: each simple statement as
     * JDT prints it, compound ones without their keyword "else" and without the braces of try, catch and switch.
     */
    private static final class StatementText {
        private final StringBuilder out = new StringBuilder("\n");

        String of(Block body) {
            addAll(body.statements());
            return out.append('}').toString();
        }

        private void addAll(Collection<?> statements) {
            statements.forEach(each -> add((Statement) each));
        }

        private void add(Statement node) {
            if (node instanceof Block block) {
                out.append('{');
                addAll(block.statements());
                out.append('}');
            } else if (node instanceof IfStatement branch) {
                head("if", List.of(branch.getExpression()));
                add(branch.getThenStatement());
                if (branch.getElseStatement() != null) {
                    add(branch.getElseStatement());
                }
            } else if (node instanceof ForStatement loop) {
                List<ASTNode> parts = new ArrayList<>();
                loop.initializers().forEach(each -> parts.add((ASTNode) each));
                if (loop.getExpression() != null) {
                    parts.add(loop.getExpression());
                }
                loop.updaters().forEach(each -> parts.add((ASTNode) each));
                head("for", parts);
                add(loop.getBody());
            } else if (node instanceof EnhancedForStatement loop) {
                out.append("for(").append(declaration(loop.getParameter())).append(": ")
                        .append(text(loop.getExpression())).append(')');
                add(loop.getBody());
            } else if (node instanceof WhileStatement loop) {
                head("while", List.of(loop.getExpression()));
                add(loop.getBody());
            } else if (node instanceof DoStatement loop) {
                head("do", List.of(loop.getExpression()));
                add(loop.getBody());
            } else if (node instanceof SwitchStatement cases) {
                head("switch", List.of(cases.getExpression()));
                addAll(cases.statements());
            } else if (node instanceof LabeledStatement labeled) {
                out.append(labeled.getLabel());
                add(labeled.getBody());
            } else if (node instanceof SynchronizedStatement locked) {
                head("synchronized", List.of(locked.getExpression()));
                add(locked.getBody());
            } else if (node instanceof TryStatement attempt) {
                addTry(attempt);
            } else if (!(node instanceof TypeDeclarationStatement)) {
                out.append(text(node));
            }
        }

        private void addTry(TryStatement attempt) {
            head("try", attempt.resources());
            addAll(attempt.getBody().statements());
            for (Object each : attempt.catchClauses()) {
                CatchClause clause = (CatchClause) each;
                out.append("catch(").append(declaration(clause.getException())).append(')');
                addAll(clause.getBody().statements());
            }
            if (attempt.getFinally() != null) {
                out.append("finally");
                addAll(attempt.getFinally().statements());
            }
        }

        private void head(String keyword, List<?> parts) {
            out.append(keyword);
            if (!parts.isEmpty()) {
                out.append('(').append(String.join("; ", parts.stream().map(each -> text((ASTNode) each)).toList())).append(')');
            }
        }

        private static String declaration(SingleVariableDeclaration variable) {
            String types = String.join("|", Stream.of(text(variable.getType()).split("\\|")).map(StatementText::shortName).toList());
            return (Modifier.isFinal(variable.getModifiers()) ? "final " : "") + types + " " + variable.getName();
        }

        /** A type without its package, if that has two parts or more. */
        private static String shortName(String type) {
            String name = type.split("[<\\[]", 2)[0];
            java.util.regex.Matcher first = java.util.regex.Pattern.compile("\\.(?=\\p{Lu})").matcher(name);
            boolean qualified = name.indexOf('.') != name.lastIndexOf('.') && !Character.isUpperCase(name.charAt(0));
            return qualified && first.find() ? type.substring(first.end()) : type;
        }

        private static String text(ASTNode node) {
            NaiveASTFlattener printer = new NaiveASTFlattener() {
                @Override
                public boolean visit(InfixExpression infix) {
                    infix.getLeftOperand().accept(this);
                    List<Expression> operands = new ArrayList<>(List.of(infix.getRightOperand()));
                    infix.extendedOperands().forEach(each -> operands.add((Expression) each));
                    for (Expression operand : operands) {
                        buffer.append(' ').append(infix.getOperator()).append(' ');
                        operand.accept(this);
                    }
                    return false;
                }
            };
            node.accept(printer);
            return printer.getResult();
        }
    }
}
