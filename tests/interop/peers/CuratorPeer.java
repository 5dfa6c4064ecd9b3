import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Apache Curator's locks, driven by lines on the standard input: README.md. */
public final class CuratorPeer {
    private static final long FOR_EVER = -1;

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** A lock as the commands see it; the methods run on the thread of its ID. */
    private interface Lock {
        /** Returns the node's path, or nothing when the time (milliseconds) is over. */
        String acquire(long limit) throws Exception;
        void release() throws Exception;
        default String members() { throw new UnsupportedOperationException("members"); }
        default String downgrade() throws Exception { throw new UnsupportedOperationException("downgrade"); }
    }

    // The path of its node is for subclasses of InterProcessMutex only.
    private static String nodeOf(InterProcessMutex mutex) throws Exception {
        Method m = InterProcessMutex.class.getDeclaredMethod("getLockPath");
        m.setAccessible(true);
        Object path = m.invoke(mutex);
        return path == null ? "-" : (String) path;
    }

    private static class Mutex implements Lock {
        private InterProcessMutex mutex;
        Mutex(InterProcessMutex mutex) { this.mutex = mutex; }
        @Override public String acquire(long limit) throws Exception {
            if (limit == FOR_EVER) mutex.acquire();
            else if (!mutex.acquire(limit, TimeUnit.MILLISECONDS)) return null;
            return nodeOf(mutex);
        }
        @Override public void release() throws Exception { mutex.release(); }
    }

    private static final class WriteLock extends Mutex {
        private final InterProcessReadWriteLock both;
        private boolean downgraded = false;
        WriteLock(InterProcessReadWriteLock both) {
            super(both.writeLock());
            this.both = both;
        }
        @Override public String downgrade() throws Exception {
            both.readLock().acquire();
            both.writeLock().release();
            downgraded = true;
            return nodeOf(both.readLock());
        }
        @Override public void release() throws Exception {
            if (!downgraded) super.release();
            else both.readLock().release();
            downgraded = false;
        }
    }

    private static final class Semaphore implements Lock {
        private final InterProcessSemaphoreV2 semaphore;
        private final String path;
        private Lease lease;
        Semaphore(CuratorFramework zk, String path, int max) {
            this.path = path;
            semaphore = new InterProcessSemaphoreV2(zk, path, max);
        }
        @Override public String acquire(long limit) throws Exception {
            lease = limit == FOR_EVER ? semaphore.acquire() : semaphore.acquire(limit, TimeUnit.MILLISECONDS);
            return lease == null ? null : path + "/leases/" + lease.getNodeName();
        }
        @Override public void release() { semaphore.returnLease(lease); }
    }

    private static final class SemaphoreMutex implements Lock {
        private final InterProcessSemaphoreMutex mutex;
        private final String path;
        SemaphoreMutex(CuratorFramework zk, String path) {
            this.path = path;
            mutex = new InterProcessSemaphoreMutex(zk, path);
        }
        @Override public String acquire(long limit) throws Exception {
            if (limit == FOR_EVER) mutex.acquire();
            else if (!mutex.acquire(limit, TimeUnit.MILLISECONDS)) return null;
            Field lease = InterProcessSemaphoreMutex.class.getDeclaredField("lease");
            lease.setAccessible(true);
            return path + "/leases/" + ((Lease) lease.get(mutex)).getNodeName();
        }
        @Override public void release() throws Exception { mutex.release(); }
    }

    private static final class Latch implements Lock {
        private final CuratorFramework zk;
        private final String path;
        private LeaderLatch latch;
        Latch(CuratorFramework zk, String path) {
            this.zk = zk;
            this.path = path;
        }
        @Override public String acquire(long limit) throws Exception {
            latch = new LeaderLatch(zk, path, "curator-peer");
            latch.start();
            if (limit == FOR_EVER) {
                latch.await();
            } else if (!latch.await(limit, TimeUnit.MILLISECONDS)) {
                latch.close();
                return null;
            }
            return latch.getOurPath();
        }
        @Override public void release() throws Exception { latch.close(); }
    }

    private static final class Selector extends LeaderSelectorListenerAdapter implements Lock {
        private final CuratorFramework zk;
        private final String path;
        private LeaderSelector selector;
        private CountDownLatch elected, resigned;
        private volatile String node;
        Selector(CuratorFramework zk, String path) {
            this.zk = zk;
            this.path = path;
        }
        @Override public void takeLeadership(CuratorFramework unused) throws Exception {
            Field mutex = LeaderSelector.class.getDeclaredField("mutex");
            mutex.setAccessible(true);
            node = nodeOf((InterProcessMutex) mutex.get(selector));
            elected.countDown();
            resigned.await();
        }
        @Override public String acquire(long limit) throws Exception {
            elected = new CountDownLatch(1);
            resigned = new CountDownLatch(1);
            selector = new LeaderSelector(zk, path, this);
            selector.setId("curator-peer");
            selector.start();
            if (limit == FOR_EVER) {
                elected.await();
            } else if (!elected.await(limit, TimeUnit.MILLISECONDS)) {
                selector.close();
                return null;
            }
            return node;
        }
        @Override public void release() throws Exception {
            resigned.countDown();
            while (zk.checkExists().forPath(node) != null) Thread.sleep(1);
            selector.close();
        }
    }

    private static final class Node implements Lock {
        private final PersistentNode node;
        Node(CuratorFramework zk, String path, String data) {
            node = new PersistentNode(zk, CreateMode.EPHEMERAL, false, path, data.getBytes(StandardCharsets.UTF_8));
        }
        @Override public String acquire(long limit) throws Exception {
            node.start();
            boolean there = node.waitForInitialCreate(limit == FOR_EVER ? 60000 : limit, TimeUnit.MILLISECONDS);
            return there ? node.getActualPath() : null;
        }
        @Override public void release() throws Exception { node.close(); }
    }

    private static final class Member implements Lock {
        private final CuratorFramework zk;
        private final GroupMember member;
        private final String path;
        Member(CuratorFramework zk, String path, String name) {
            this.zk = zk;
            this.path = path + "/" + name;
            member = new GroupMember(zk, path, name, ("data of " + name).getBytes(StandardCharsets.UTF_8));
        }
        @Override public String acquire(long limit) throws Exception {
            member.start();
            while (zk.checkExists().forPath(path) == null) Thread.sleep(5);
            return path;
        }
        @Override public void release() { member.close(); }
        @Override public String members() {
            StringBuilder all = new StringBuilder();
            for (Map.Entry<String, byte[]> m : new TreeMap<>(member.getCurrentMembers()).entrySet())
                all.append(" ").append(m.getKey()).append("=").append(new String(m.getValue(), StandardCharsets.UTF_8));
            return all.toString();
        }
    }

    private final CuratorFramework zk;
    private final Map<String, Lock> locks = new HashMap<>();  // one for each ID
    private final Map<String, ExecutorService> threads = new HashMap<>();

    private CuratorPeer(CuratorFramework zk) { this.zk = zk; }

    private Lock make(String id, String kind, String path, String argument) {
        switch (kind) {
            case "mutex": return new Mutex(new InterProcessMutex(zk, path));
            case "revocable": {
                InterProcessMutex mutex = new InterProcessMutex(zk, path);
                mutex.makeRevocable(held -> say(id + " revoke-requested"));
                return new Mutex(mutex);
            }
            case "read": return new Mutex(new InterProcessReadWriteLock(zk, path).readLock());
            case "write": return new WriteLock(new InterProcessReadWriteLock(zk, path));
            case "semaphore": return new Semaphore(zk, path, Integer.parseInt(argument));
            case "semaphore-mutex": return new SemaphoreMutex(zk, path);
            case "latch": return new Latch(zk, path);
            case "selector": return new Selector(zk, path);
            case "node": return new Node(zk, path, argument);
            case "member": return new Member(zk, path, argument);
            default: throw new IllegalArgumentException("no kind " + kind);
        }
    }

    private String acquire(String id, Lock lock, long limit) throws Exception {
        String node = lock.acquire(limit);
        if (node == null) return "timeout";
        synchronized (locks) { locks.put(id, lock); }
        return "acquired " + node;
    }

    private Lock held(String id) {
        synchronized (locks) {
            if (!locks.containsKey(id)) throw new IllegalStateException("nothing held");
            return locks.get(id);
        }
    }

    private boolean violatesRecord(String record, String node) throws Exception {
        Stat stat = new Stat();
        String[] last = new String(zk.getData().storingStatIn(stat).forPath(record), StandardCharsets.UTF_8).split(" ");
        String mine = node.equals("-") ? "-" : node.substring(node.length() - 10);
        boolean overtaken = !mine.equals("-") && !last[1].equals("-")
                && Integer.parseInt(mine) <= Integer.parseInt(last[1]);
        byte[] next = (Integer.parseInt(last[0]) + 1 + " " + mine).getBytes(StandardCharsets.UTF_8);
        try {
            zk.setData().withVersion(stat.getVersion()).forPath(record, next);
        } catch (KeeperException.BadVersionException twoInside) {
            return true;
        }
        return overtaken;
    }

    private String load(Lock lock, int rounds, String record) throws Exception {
        int violations = 0;
        for (int i = 0; i < rounds; ++i) {
            String node = lock.acquire(FOR_EVER);
            try {
                if (violatesRecord(record, node)) ++violations;
            } finally {
                lock.release();
            }
        }
        return "done " + rounds + " " + violations;
    }

    private Collection<Participant> candidates(String kind, String path) throws Exception {
        if (kind.equals("latch")) return new LeaderLatch(zk, path).getParticipants();
        return new LeaderSelector(zk, path, new LeaderSelectorListenerAdapter() {
            @Override public void takeLeadership(CuratorFramework unused) {}
        }).getParticipants();
    }

    private String candidateIds(String kind, String path) throws Exception {
        StringBuilder ids = new StringBuilder("candidates");
        for (Participant p : candidates(kind, path)) ids.append(' ').append(p.getId());
        return ids.toString();
    }

    private String run(String id, String[] w) throws Exception {
        switch (w[1]) {
            case "acquire": return acquire(id, make(id, w[2], w[3], w.length > 4 ? w[4] : ""), FOR_EVER);
            case "try": return acquire(id, make(id, w[3], w[4], w.length > 5 ? w[5] : ""), Long.parseLong(w[2]));
            case "release": {
                held(id).release();
                synchronized (locks) { locks.remove(id); }
                return "released";
            }
            case "members": return "members" + held(id).members();
            case "downgrade": return "downgraded " + held(id).downgrade();
            case "revoke":
                Revoker.attemptRevoke(zk, w[2]);
                return "revoking";
            case "candidates": return candidateIds(w[2], w[3]);
            case "load": return load(make(id, w[2], w[3], ""), Integer.parseInt(w[4]), w[5]);
            default: throw new IllegalArgumentException("no command " + w[1]);
        }
    }

    private void start(String line) {
        String[] words = line.trim().split("\\s+");
        String id = words[0];
        // Curator's locks belong to threads.
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
                // By default the address of this machine, which not every one can find out.
                .defaultData("10.0.0.1".getBytes(StandardCharsets.UTF_8))
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build();
        zk.start();
        if (!zk.blockUntilConnected(30, TimeUnit.SECONDS))
            throw new IllegalStateException("no connection to " + args[0]);
        CuratorPeer peer = new CuratorPeer(zk);
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null && !line.equals("exit");) peer.start(line);
        zk.close();
        System.exit(0);  // with threads that still wait for a lock
    }
}
