import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;

/** Apache Curator's ServiceDiscovery, driven by lines on the standard input: README.md. */
public final class CuratorDiscoveryPeer {
    private final CuratorFramework zk;
    private final Map<String, ServiceDiscovery<Object>> discoveries = new HashMap<>();  // by base
    private final Map<String, ServiceInstance<Object>> registered = new HashMap<>();    // by ID of the command
    private final Map<String, ServiceProvider<Object>> providers = new HashMap<>();     // by base and name

    private CuratorDiscoveryPeer(CuratorFramework zk) { this.zk = zk; }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private ServiceDiscovery<Object> at(String base) throws Exception {
        ServiceDiscovery<Object> d = discoveries.get(base);
        if (d != null) return d;
        d = ServiceDiscoveryBuilder.builder(Object.class).client(zk).basePath(base).build();
        d.start();
        discoveries.put(base, d);
        return d;
    }

    private static ServiceInstance<Object> instance(String name, String id, String port, String weight)
            throws Exception {
        ServiceInstanceBuilder<Object> b = ServiceInstance.<Object>builder().name(name).id(id).address("10.0.0.1")
                .port(Integer.parseInt(port));
        Map<String, Object> payload = new HashMap<>();
        payload.put("weight", Integer.parseInt(weight));
        return b.payload(payload).build();
    }

    private static String text(ServiceInstance<?> i) {
        Object weight = i.getPayload() instanceof Map ? ((Map<?, ?>) i.getPayload()).get("weight") : null;
        return i.getId() + ":" + i.getAddress() + ":" + i.getPort() + ":" + weight + ":" + i.getServiceType()
                + (i.isEnabled() ? "" : ":disabled");
    }

    private ServiceProvider<Object> provider(String base, String name) throws Exception {
        ServiceProvider<Object> p = providers.get(base + ' ' + name);
        if (p != null) return p;
        p = at(base).serviceProviderBuilder().serviceName(name).build();
        p.start();
        providers.put(base + ' ' + name, p);
        return p;
    }

    private String run(String id, String[] w) throws Exception {
        switch (w[1]) {
            case "register": {  // BASE NAME INSTANCE PORT WEIGHT
                ServiceInstance<Object> i = instance(w[3], w[4], w[5], w[6]);
                at(w[2]).registerService(i);
                registered.put(id, i);
                return "registered";
            }
            case "update":  // BASE NAME INSTANCE PORT WEIGHT
                at(w[2]).updateService(instance(w[3], w[4], w[5], w[6]));
                return "updated";
            case "unregister":  // BASE
                at(w[2]).unregisterService(registered.remove(id));
                return "unregistered";
            case "names": {  // BASE
                List<String> names = new ArrayList<>(at(w[2]).queryForNames());
                Collections.sort(names);
                return "names " + String.join(" ", names);
            }
            case "instances": {  // BASE NAME
                List<String> all = new ArrayList<>();
                for (ServiceInstance<Object> i : at(w[2]).queryForInstances(w[3])) all.add(text(i));
                Collections.sort(all);
                return "instances " + String.join(" ", all);
            }
            case "provide": {  // BASE NAME: what its provider, which follows, gives
                ServiceInstance<Object> i = provider(w[2], w[3]).getInstance();
                return "provided " + (i == null ? "nothing" : text(i));
            }
            default: throw new IllegalArgumentException("no command " + w[1]);
        }
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework zk = CuratorFrameworkFactory.builder()
                .connectString(args[0]).sessionTimeoutMs(10000).connectionTimeoutMs(10000)
                .retryPolicy(new ExponentialBackoffRetry(100, 5)).build();
        zk.start();
        if (!zk.blockUntilConnected(30, TimeUnit.SECONDS))
            throw new IllegalStateException("no connection to " + args[0]);
        CuratorDiscoveryPeer peer = new CuratorDiscoveryPeer(zk);
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null && !line.equals("exit");) {
            String[] words = line.trim().split("\\s+");
            try {
                say(words[0] + " " + peer.run(words[0], words));
            } catch (Exception e) {
                say(words[0] + " failed " + e.toString().replace('\n', ' '));
            }
        }
        zk.close();
        System.exit(0);
    }
}
