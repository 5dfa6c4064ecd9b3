import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Apache Curator's barriers, counters and queues, driven by lines on the standard input: README.md. */
public final class CuratorStructuresPeer {
    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static final class Text implements QueueSerializer<String> {
        @Override public byte[] serialize(String item) { return item.getBytes(StandardCharsets.UTF_8); }
        @Override public String deserialize(byte[] bytes) { return new String(bytes, StandardCharsets.UTF_8); }
    }

    /** Puts what the queue hands out into a list, from which a command takes it. */
    private static final class Collector implements QueueConsumer<String> {
        final BlockingQueue<String> items = new LinkedBlockingQueue<>();
        @Override public void consumeMessage(String item) { items.add(item); }
        @Override public void stateChanged(CuratorFramework unused, ConnectionState state) {}
    }

    /** A consumer that takes all it can get until it is asked what it has. */
    private static final class Gathering {
        final Collector collector = new Collector();
        QueueBase<String> queue;
    }

    private final CuratorFramework zk;
    private final Map<String, Gathering> gatherings = new HashMap<>();  // one for each ID
    private final Map<String, DistributedDoubleBarrier> inside = new HashMap<>();  // one for each ID
    private final Map<String, ExecutorService> threads = new HashMap<>();

    private CuratorStructuresPeer(CuratorFramework zk) { this.zk = zk; }

    private String barrier(String what, String path) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(zk, path);
        switch (what) {
            case "set": barrier.setBarrier(); return "set";
            case "remove": barrier.removeBarrier(); return "removed";
            case "wait": barrier.waitOnBarrier(); return "passed";
            default: throw new IllegalArgumentException("no barrier " + what);
        }
    }

    private String enter(String id, String path, int members, long limit) throws Exception {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(zk, path, members);
        if (!barrier.enter(limit, TimeUnit.MILLISECONDS)) return "timeout";
        synchronized (inside) { inside.put(id, barrier); }
        return "entered";
    }

    private String leave(String id) throws Exception {
        DistributedDoubleBarrier barrier;
        synchronized (inside) { barrier = inside.remove(id); }
        barrier.leave();
        return "left";
    }

    private String add(String path, long delta) throws Exception {
        AtomicValue<Long> after =
                new DistributedAtomicLong(zk, path, new ExponentialBackoffRetry(10, 20)).add(delta);
        return after.succeeded() ? "number " + after.postValue() : "failed";
    }

    private String number(String path) throws Exception {
        return "number " + new DistributedAtomicLong(zk, path, new ExponentialBackoffRetry(10, 20)).get().postValue();
    }

    private String sharedCount(String path, String set) throws Exception {
        try (SharedCount count = new SharedCount(zk, path, 0)) {
            count.start();
            if (!set.isEmpty()) count.setCount(Integer.parseInt(set));
            return "number " + count.getCount();
        }
    }

    private QueueBase<String> queue(QueueConsumer<String> consumer, String kind, String path) throws Exception {
        QueueBuilder<String> how = QueueBuilder.builder(zk, consumer, new Text(), path);
        if (kind.endsWith("-locked")) how = how.lockPath(path + "-locks");
        QueueBase<String> queue;
        switch (kind.replace("-locked", "")) {
            case "plain": queue = how.buildQueue(); break;
            case "priority": queue = how.buildPriorityQueue(1); break;
            case "delay": queue = how.buildDelayQueue(); break;
            case "id": queue = how.buildIdQueue(); break;
            default: throw new IllegalArgumentException("no queue " + kind);
        }
        queue.start();
        return queue;
    }

    private static MultiItem<String> several(String[] words, int first) {
        Iterator<String> items = Arrays.asList(words).subList(first, words.length).iterator();
        return () -> items.hasNext() ? items.next() : null;
    }

    private String put(String kind, String path, String item, String how) throws Exception {
        if (kind.equals("simple")) {
            new SimpleDistributedQueue(zk, path).offer(item.getBytes(StandardCharsets.UTF_8));
            return "put";
        }
        try (QueueBase<String> queue = queue(null, kind, path)) {
            if (queue instanceof DistributedPriorityQueue)
                ((DistributedPriorityQueue<String>) queue).put(item, Integer.parseInt(how));
            else if (queue instanceof DistributedDelayQueue)
                ((DistributedDelayQueue<String>) queue).put(item, System.currentTimeMillis() + Long.parseLong(how));
            else if (queue instanceof DistributedIdQueue)
                ((DistributedIdQueue<String>) queue).put(item, how);
            else
                ((DistributedQueue<String>) queue).put(item);
            queue.flushPuts(10, TimeUnit.SECONDS);
        }
        return "put";
    }

    private String putMulti(String[] w) throws Exception {
        try (QueueBase<String> queue = queue(null, w[2], w[3])) {
            ((DistributedQueue<String>) queue).putMulti(several(w, 4));
            queue.flushPuts(10, TimeUnit.SECONDS);
        }
        return "put";
    }

    private String consume(String kind, String path, int n) throws Exception {
        StringBuilder got = new StringBuilder("consumed");
        if (kind.equals("simple")) {
            SimpleDistributedQueue queue = new SimpleDistributedQueue(zk, path);
            for (int i = 0; i < n; ++i) got.append(',').append(new String(queue.take(), StandardCharsets.UTF_8));
            return got.toString();
        }
        Collector collector = new Collector();
        try (AutoCloseable queue = queue(collector, kind, path)) {
            for (int i = 0; i < n; ++i) got.append(',').append(collector.items.take());
        }
        return got.toString();
    }

    /** A consumer fails until Curator has put the item again, and has handed it out a second time. */
    private String fail(String kind, String path) throws Exception {
        CountDownLatch calls = new CountDownLatch(2);
        QueueConsumer<String> consumer = new QueueConsumer<String>() {
            @Override public void consumeMessage(String item) throws Exception {
                calls.countDown();
                throw new Exception("failed on purpose");
            }
            @Override public void stateChanged(CuratorFramework unused, ConnectionState state) {}
        };
        try (AutoCloseable queue = queue(consumer, kind, path)) { calls.await(); }
        return "failed";
    }

    private String gather(String id, String kind, String path) throws Exception {
        Gathering g = new Gathering();
        g.queue = queue(g.collector, kind, path);
        synchronized (gatherings) { gatherings.put(id, g); }
        return "gathering";
    }

    private String gathered(String id, int n) throws Exception {
        Gathering g;
        synchronized (gatherings) { g = gatherings.remove(id); }
        StringBuilder got = new StringBuilder("gathered");
        for (int i = 0; i < n; ++i) got.append(',').append(g.collector.items.take());
        g.queue.close();
        for (String more; (more = g.collector.items.poll()) != null;) got.append(',').append(more);
        return got.toString();
    }

    private String run(String id, String[] w) throws Exception {
        switch (w[1]) {
            case "barrier": return barrier(w[2], w[3]);
            case "enter": return enter(id, w[2], Integer.parseInt(w[3]), Long.parseLong(w[4]));
            case "leave": return leave(id);
            case "add": return add(w[2], Long.parseLong(w[3]));
            case "number": return number(w[2]);
            case "shared-count": return sharedCount(w[2], w.length > 3 ? w[3] : "");
            case "put": return put(w[2], w[3], w[4], w.length > 5 ? w[5] : "0");
            case "put-multi": return putMulti(w);
            case "consume": return consume(w[2], w[3], Integer.parseInt(w[4]));
            case "fail": return fail(w[2], w[3]);
            case "gather": return gather(id, w[2], w[3]);
            case "gathered": return gathered(id, Integer.parseInt(w[2]));
            default: throw new IllegalArgumentException("no command " + w[1]);
        }
    }

    private void start(String line) {
        String[] words = line.trim().split("\\s+");
        String id = words[0];
        threads.computeIfAbsent(id, unused -> Executors.newSingleThreadExecutor()).execute(() -> {
            try {
                say(id + " " + run(id, words));
            } catch (Exception e) {
                say(id + " failed " + e.toString().replace('\n', ' '));
            }
        });
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework zk = CuratorFrameworkFactory.builder()
                .connectString(args[0]).sessionTimeoutMs(10000).connectionTimeoutMs(10000)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build();
        zk.start();
        if (!zk.blockUntilConnected(30, TimeUnit.SECONDS))
            throw new IllegalStateException("no connection to " + args[0]);
        CuratorStructuresPeer peer = new CuratorStructuresPeer(zk);
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null && !line.equals("exit");) peer.start(line);
        zk.close();
        System.exit(0);  // with threads that still wait
    }
}
