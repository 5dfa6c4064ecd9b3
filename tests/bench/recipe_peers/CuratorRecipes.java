import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Apache Curator's LeaderLatch, TreeCache, CuratorCache, DistributedAtomicLong and DistributedQueue, measured: README.md. */
public final class CuratorRecipes {
    private final CuratorFramework zk;
    private LeaderLatch latch;
    private Object cache;  // what is measured is kept
    private DistributedQueue<String> consuming;
    private ConcurrentLinkedQueue<String> consumed;

    private final String servers;
    private final int timeoutMs;
    private final List<CuratorCache> fleet = new ArrayList<>();

    private CuratorRecipes(CuratorFramework zk, String servers, int timeoutMs) {
        this.zk = zk;
        this.servers = servers;
        this.timeoutMs = timeoutMs;
    }

    private static double now() { return System.nanoTime() * 1e-9; }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void elect(String path) throws Exception {
        latch = new LeaderLatch(zk, path);
        latch.addListener(new LeaderLatchListener() {
            @Override public void isLeader() { say("leads " + now()); }
            @Override public void notLeader() {}
        });
        latch.start();
    }

    private void resign() throws Exception {
        double began = now();
        latch.close();
        say("resigned " + began);
    }

    private static long used() {
        for (int i = 0; i < 3; ++i) System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private long count(TreeCache tree, String path) {
        Map<String, ChildData> children = tree.getCurrentChildren(path);
        if (children == null) return 0;
        long n = 1;
        for (String name : children.keySet()) n += count(tree, path + "/" + name);
        return n;
    }

    private void treeCache(String path) throws Exception {
        long before = used();
        double began = now();
        CountDownLatch ready = new CountDownLatch(1);
        TreeCache tree = TreeCache.newBuilder(zk, path).build();
        tree.getListenable().addListener((client, event) -> {
            if (event.getType() == TreeCacheEvent.Type.INITIALIZED) ready.countDown();
        });
        tree.start();
        ready.await();
        double took = now() - began;
        cache = tree;
        say("cached " + took + " " + count(tree, path) + " " + (used() - before));
    }

    private void curatorCache(String path) throws Exception {
        long before = used();
        double began = now();
        CountDownLatch ready = new CountDownLatch(1);
        CuratorCache all = CuratorCache.build(zk, path);
        all.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).build());
        all.start();
        ready.await();
        double took = now() - began;
        cache = all;
        say("cached " + took + " " + all.size() + " " + (used() - before));
    }

    private static CuratorFramework connect(String servers, int timeoutMs) throws Exception {
        CuratorFramework zk = CuratorFrameworkFactory.builder()
                .connectString(servers).sessionTimeoutMs(timeoutMs).connectionTimeoutMs(10000)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build();
        zk.start();
        if (!zk.blockUntilConnected(30, TimeUnit.SECONDS)) throw new IllegalStateException("no connection");
        return zk;
    }

    private void makeFleet(String path, int n) throws Exception {
        double began = now();
        CountDownLatch ready = new CountDownLatch(n);
        for (int i = 0; i < n; ++i) {
            CuratorCache one = CuratorCache.build(connect(servers, timeoutMs), path);
            one.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).build());
            fleet.add(one);
            one.start();
        }
        ready.await();
        say("fleet " + (now() - began));
    }

    private void untilFleetShows(String path) throws Exception {
        for (CuratorCache one : fleet)
            while (!one.get(path).isPresent()) Thread.sleep(5);
        say("current " + now());
    }

    // As its documentation advises under contention: with a lock after some tries in vain.
    private void add(String path, int threads, int times) throws Exception {
        double began = now();
        ExponentialBackoffRetry again = new ExponentialBackoffRetry(1, 10, 50);
        PromotedToLock lock = PromotedToLock.builder().lockPath(path + "-lock").retryPolicy(again).build();
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; ++i) {
            all[i] = new Thread(() -> {
                DistributedAtomicLong counter = new DistributedAtomicLong(zk, path, again, lock);
                try {
                    for (int k = 0; k < times; ++k)
                        while (!counter.increment().succeeded()) {}
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            all[i].start();
        }
        for (Thread t : all) t.join();
        double took = now() - began;
        AtomicValue<Long> sum = new DistributedAtomicLong(zk, path, again).get();
        say("added " + took + " " + sum.postValue());
    }

    private static final class Text implements QueueSerializer<String> {
        @Override public byte[] serialize(String item) { return item.getBytes(StandardCharsets.UTF_8); }
        @Override public String deserialize(byte[] bytes) { return new String(bytes, StandardCharsets.UTF_8); }
    }

    private QueueBuilder<String> queue(QueueConsumer<String> consumer, String kind, String path) {
        QueueBuilder<String> how = QueueBuilder.builder(zk, consumer, new Text(), path);
        return kind.equals("locked") ? how.lockPath(path + "-locks") : how;
    }

    private void fill(String kind, String path, int n) throws Exception {
        double began = now();
        try (DistributedQueue<String> all = queue(null, kind, path).buildQueue()) {
            all.start();
            for (int i = 0; i < n; ++i) all.put(Integer.toString(i));
            all.flushPuts(100, TimeUnit.SECONDS);
        }
        say("filled " + (now() - began));
    }

    private void consume(String kind, String path, int consumers) throws Exception {
        consumed = new ConcurrentLinkedQueue<>();
        consuming = queue(new QueueConsumer<String>() {
            @Override public void consumeMessage(String item) { consumed.add(item); }
            @Override public void stateChanged(CuratorFramework unused, ConnectionState state) {}
        }, kind, path).executor(Executors.newFixedThreadPool(consumers)).buildQueue();
        consuming.start();
    }

    private void stop() throws Exception {
        consuming.close();
        say("consumed " + String.join(" ", consumed));
    }

    private void run(String[] w) throws Exception {
        switch (w[0]) {
            case "elect": elect(w[1]); return;
            case "resign": resign(); return;
            case "add": add(w[1], Integer.parseInt(w[2]), Integer.parseInt(w[3])); return;
            case "fill": fill(w[1], w[2], Integer.parseInt(w[3])); return;
            case "consume": consume(w[1], w[2], Integer.parseInt(w[3])); return;
            case "stop": stop(); return;
            case "cache": treeCache(w[1]); return;
            case "fleet": makeFleet(w[1], Integer.parseInt(w[2])); return;
            case "current": untilFleetShows(w[1]); return;
            case "curatorcache": curatorCache(w[1]); return;
            default: throw new IllegalArgumentException("no command " + w[0]);
        }
    }

    public static void main(String[] args) {
        try {
            CuratorFramework zk = connect(args[0], Integer.parseInt(args[1]));
            CuratorRecipes recipes = new CuratorRecipes(zk, args[0], Integer.parseInt(args[1]));
            say("ready");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null;) recipes.run(line.split(" "));
            zk.close();
            System.exit(0);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }
}
