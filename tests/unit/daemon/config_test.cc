// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rocegw::daemon {
namespace {

using Lines = std::vector<std::string>;

Lines ProblemsOf(const std::string& yaml) { return ParseConfig(yaml, "f.yaml").problems; }

TEST(Config_DefaultText, Parsed_IsTheDefaultValue) {
  const ConfigResult result = ParseConfig(std::string(DefaultConfigText()), "default");
  EXPECT_EQ(result.problems, Lines{});
  EXPECT_TRUE(result.config == Config{});
}

TEST(Config_DefaultText, EveryCommentedKey_IsKnown) {
  // Commented examples must be valid as well: uncomments them.
  std::string text(DefaultConfigText());
  const auto uncomment = [&text](const std::string& line) {
    const size_t at = text.find("# " + line);
    ASSERT_NE(at, std::string::npos) << line;
    text.erase(at, 2);
  };
  for (const char* line :
       {"name: host-a", "- name: port1", "  mode: vdev", "  vdev: net_memif0", "  mtu: 1500",
        "  mac: 02:", "  addresses: [", "  routers: [", "  neighbours:", "    - {address: 192",
        "policy:", "  - {sign: cnps", "  - {sign: unmarked_loss", "  - {sign: always",
        "dcqcn: {rpg_ai_rate", "swift: {target_delay"}) {
    uncomment(line);
  }
  const ConfigResult result = ParseConfig(text, "default");
  EXPECT_EQ(result.problems, Lines{});
  EXPECT_EQ(result.config.name, "host-a");
  ASSERT_EQ(result.config.ports.size(), 2u);
  EXPECT_EQ(result.config.ports[1].neighbours.size(), 1u);
}

TEST(Config_EmptyFile, Parsed_IsTheDefaultValue) {
  for (const char* text : {"", "# nothing\n", "---\n"}) {
    const ConfigResult result = ParseConfig(text, "f.yaml");
    EXPECT_EQ(result.problems, Lines{}) << text;
    EXPECT_TRUE(result.config == Config{}) << text;
  }
}

TEST(Config, AllKeys_AreTaken) {
  const ConfigResult result = ParseConfig(R"(
name: gw-1
runtime_dir: /tmp/gw
log_level: debug
workers: 3
pin_workers: true
waiting:
  mode: hybrid
  yield_after_us: 1
  sleep_after_us: 2
  slice_us: 200
  realtime_priority: 10
  keep_processors_awake: true
ports:
  - {name: fast, mode: af_packet, interface: eth1}
  - {mode: udp, interface: eth0, segmentation: off, steering: hash, receive_buffer_bytes: 1MiB}
  - mode: vdev
    vdev: net_ring0
    mtu: 9000
    vlan: 7
    mac: 02:aB:00:00:00:0f
    addresses: [192.0.2.1/24, "2001:db8::1/64"]
    routers: [192.0.2.254, "fe80::1"]
    neighbours: [{address: "2001:db8::2", mac: 02:00:00:00:00:02}]
attach_socket: {mode: 0666, owner: "nobody:users"}
grpc_socket: {path: /tmp/other.sock}
metrics: {address: ""}
dpdk: {huge_pages: off, memory_mb: 512, eal_args: [--no-pci, "-v"]}
copy_engine: {mode: auto, devices: [wq0.0, wq0.1], minimum_bytes: 1024}
gateways: {discovery: enabled, channels: enabled, paths: 3, vendor_id: 06abCD, authentication: required, key_file: /k,
           protection: encrypt}
memory_placement: enabled
congestion:
  window_bytes: 256KiB
  native: swift
  ecn: false
  cnp: {send: false, interval_us: 50, dscp: 8}
  dcqcn: {rpg_ai_rate: 40}
  policy: [{sign: cnps, algorithm: dcqcn}, {sign: delay, threshold: 300, algorithm: swift}]
  channel: [swift, static]
  channel_policy: [{sign: hints, threshold: 7, algorithm: caqm}]
default_pool: {trusted: false, remap: deny, limits: {sessions: 2, qps: 16, cqs: 17, srqs: 21, mrs: 18, pds: 19, cm_ids: 20,
  registered_bytes: 1GiB, segment_bytes: 64MiB}}
)",
                                          "f.yaml");
  ASSERT_EQ(result.problems, Lines{});
  const Config& config = result.config;
  EXPECT_EQ(config.name, "gw-1");
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.workers, 3u);
  EXPECT_TRUE(config.pin_workers);
  EXPECT_EQ(config.waiting, (datapath::WaitingConfig{WaitMode::kHybrid, 1, 2, 200, 10, true}));
  ASSERT_EQ(config.ports.size(), 3u);
  EXPECT_EQ(config.ports[0].name, "fast");
  EXPECT_EQ(config.ports[0].mode, PortMode::kAfPacket);
  EXPECT_EQ(config.ports[1].name, "port1");
  EXPECT_EQ(config.ports[1].segmentation, Segmentation::kOff);
  EXPECT_EQ(config.ports[1].steering, Steering::kHash);
  EXPECT_EQ(config.ports[1].receive_buffer_bytes, 1u << 20);
  const PortConfig& vdev = config.ports[2];
  EXPECT_EQ(vdev.interface, "");
  EXPECT_EQ(vdev.vdev, "net_ring0");
  EXPECT_EQ(vdev.mtu, 9000u);
  EXPECT_EQ(vdev.vlan, 7u);
  EXPECT_EQ(vdev.mac, (MacAddress{2, 0xAB, 0, 0, 0, 0x0F}));
  ASSERT_EQ(vdev.addresses.size(), 2u);
  EXPECT_EQ(vdev.addresses[0].address, wire::Gid::FromV4(0xC0000201));
  EXPECT_EQ(vdev.addresses[0].prefix_length, 24u);
  EXPECT_EQ(vdev.addresses[1].prefix_length, 64u);
  ASSERT_EQ(vdev.routers.size(), 2u);
  EXPECT_EQ(vdev.routers[1], *wire::ParseGid("fe80::1"));
  ASSERT_EQ(vdev.neighbours.size(), 1u);
  EXPECT_EQ(vdev.neighbours[0].address, *wire::ParseGid("2001:db8::2"));
  EXPECT_EQ(vdev.neighbours[0].mac[5], 2);
  EXPECT_EQ(config.attach_socket, (SocketConfig{"/tmp/gw/attach.sock", 0666, "nobody:users"}));
  EXPECT_EQ(config.grpc_socket, (SocketConfig{"/tmp/other.sock", 0600, ""}));
  EXPECT_EQ(config.metrics_address, "");
  EXPECT_FALSE(config.dpdk.huge_pages);
  EXPECT_EQ(config.dpdk.memory_mb, 512u);
  EXPECT_EQ(config.dpdk.eal_args, (Lines{"--no-pci", "-v"}));
  EXPECT_EQ(config.copy_engine,
            (datapath::CopyEngineConfig{CopyEngineMode::kAuto, {"wq0.0", "wq0.1"}, 1024}));
  EXPECT_EQ(config.window_bytes, 256u << 10);
  EXPECT_EQ(config.gateways, (GatewaysConfig{true, true, 3, 0x06ABCD, PeerAuthentication::kRequired,
                                             "/k", FrameProtection::kEncrypt}));
  EXPECT_EQ(config.memory_placement, MemoryPlacement::kEnabled);
  EXPECT_EQ(config.native_congestion, flow::CcKind::kSwift);
  flow::CcProfile congestion;
  congestion.ecn = congestion.send_cnps = false;
  congestion.cnp_interval = Microseconds(50);
  congestion.cnp_traffic_class = 8 << 2 | 2;
  ASSERT_TRUE(congestion.Set(flow::CcKind::kDcqcn, "rpg_ai_rate", 40));
  EXPECT_TRUE(config.congestion == congestion);
  flow::CcPolicy policy;
  policy.Add({flow::CcSign::kCnps, 1, flow::CcKind::kDcqcn});
  policy.Add({flow::CcSign::kDelay, 300, flow::CcKind::kSwift});
  EXPECT_TRUE(config.congestion_policy == policy);
  EXPECT_EQ(config.channel_congestion, wire::kOptionCcRtt | wire::kOptionCcStatic);
  flow::CcPolicy channel_policy;
  channel_policy.Add({flow::CcSign::kHints, 7, flow::CcKind::kCaqm});
  EXPECT_TRUE(config.channel_policy == channel_policy);
  EXPECT_FALSE(config.default_pool.trusted);
  EXPECT_FALSE(config.default_pool.remap_allowed);
  EXPECT_EQ(config.default_pool.limits,
            (LimitsConfig{2, 16, 17, 21, 18, 19, 20, 1ull << 30, 64ull << 20}));
}

struct BadCase {
  const char* yaml;
  Lines problems;
};

TEST(Config, PciAddress_IsLowerCase) {
  const ConfigResult result = ParseConfig(
      "ports: [{mode: pci, pci: \"00AB:C3:1F.7\", addresses: [192.0.2.1/24]}]", "f.yaml");
  ASSERT_EQ(result.problems, Lines{});
  EXPECT_EQ(result.config.ports[0].pci, "00ab:c3:1f.7");
}

TEST(Config_BadInput, Reported_WithFileLineAndRemedy) {
  const BadCase cases[] = {
      {"worker: 1", {"f.yaml:1: unknown key 'worker' (did you mean 'workers'?)"}},
      {"workers: 1\n\nzebra: 2", {"f.yaml:3: unknown key 'zebra'"}},
      {"dpdk:\n  memory: 4", {"f.yaml:2: unknown key 'dpdk.memory' (did you mean 'memory_mb'?)"}},
      {"ports:\n  - mode: udp\n    mtus: 3",
       {"f.yaml:3: unknown key 'ports[0].mtus' (did you mean 'mtu'?)"}},
      {"workers: 65", {"f.yaml:1: workers: 65 is out of range, 0 to 64 is allowed"}},
      {"workers: -1", {"f.yaml:1: workers: '-1' is not a whole number"}},
      {"workers: many", {"f.yaml:1: workers: 'many' is not a whole number"}},
      {"workers: 99999999999999999999",
       {"f.yaml:1: workers: '99999999999999999999' is not a whole number"}},
      {"workers:", {"f.yaml:1: workers: the value is missing"}},
      {"workers: [1]", {"f.yaml:1: workers: one value is expected here, not a list or a mapping"}},
      {"workers: 1\nworkers: 2", {"f.yaml:2: key 'workers' is given twice"}},
      {"[1]: 2", {"f.yaml:1: a key must be a word"}},
      {"pin_workers: yes", {"f.yaml:1: pin_workers: 'yes' is neither true nor false"}},
      {"waiting: {mode: sometimes}",
       {"f.yaml:1: waiting.mode: 'sometimes' is not known, use busy, event, event_batch, hybrid or "
        "adaptive"}},
      {"waiting: {slice_us: 99}",
       {"f.yaml:1: waiting.slice_us: the kernel has no slices below 100; 0 leaves the slice to "
        "it"}},
      {"waiting: {mode: busy, realtime_priority: 1}",
       {"f.yaml:1: waiting.realtime_priority: a real-time thread that never sleeps would stop all "
        "else on its processor"}},
      {"waiting: {realtime_priority: 100}",
       {"f.yaml:1: waiting.realtime_priority: 100 is out of range, 0 to 99 is allowed"}},
      {"log_level: loud",
       {"f.yaml:1: log_level: 'loud' is not known, use trace, debug, info, warn or error"}},
      {"name: Host_A",
       {"f.yaml:1: name: 'Host_A' must be 1 to 63 of a-z, 0-9 and '-', with no '-' at either end"}},
      {"runtime_dir: run", {"f.yaml:1: runtime_dir: 'run' is not an absolute path"}},
      {"metrics: {address: localhost}",
       {"f.yaml:1: metrics.address: 'localhost' is not ADDRESS:PORT (like 127.0.0.1:7474 or "
        "[::1]:7474; empty: off)"}},
      {"metrics: 7474", {"f.yaml:1: metrics: a mapping (key: value) is expected here"}},
      {"attach_socket: {mode: 0888}",
       {"f.yaml:1: attach_socket.mode: '0888' is not a file mode (octal, like 0660)"}},
      {"attach_socket: {owner: 'a:b:c'}",
       {"f.yaml:1: attach_socket.owner: 'a:b:c' is not USER, USER:GROUP or :GROUP"}},
      {"grpc_socket: {path: /run/rocegw/attach.sock}",
       {"f.yaml:1: grpc_socket: attach_socket and grpc_socket have the same path"}},
      {"ports: []", {"f.yaml:1: ports: at least one port is needed"}},
      {"ports: {mode: udp}",
       {"f.yaml:1: ports: a list (- ...) is expected here",
        "f.yaml:1: ports: at least one port is needed"}},
      {"ports:\n  - udp",
       {"f.yaml:2: ports[0]: a mapping (key: value) is expected here",
        "f.yaml:1: ports: at least one port is needed"}},
      {"ports:\n  - mode: mlx5",
       {"f.yaml:2: ports[0].mode: 'mlx5' is not known, use udp, af_packet, af_xdp, pci or vdev"}},
      {"ports:\n  - mode: pci",
       {"f.yaml:2: ports[0]: mode pci needs the key 'pci'",
        "f.yaml:2: ports[0]: mode pci needs 'addresses': the device has no netdev to take them "
        "from"}},
      {"ports:\n  - mode: pci\n    pci: 03:00.0\n    addresses: [192.0.2.1/24]",
       {"f.yaml:3: ports[0].pci: '03:00.0' is not a PCI address (like 0000:03:00.0; `lspci -D` "
        "lists them)"}},
      {"ports:\n  - mode: pci\n    pci: 0000:03:20.0\n    addresses: [192.0.2.1/24]",
       {"f.yaml:3: ports[0].pci: '0000:03:20.0' is not a PCI address (like 0000:03:00.0; `lspci "
        "-D` lists them)"}},
      {"ports:\n  - mode: pci\n    pci: 0x00:03:00.0\n    addresses: [192.0.2.1/24]",
       {"f.yaml:3: ports[0].pci: '0x00:03:00.0' is not a PCI address (like 0000:03:00.0; `lspci "
        "-D` lists them)"}},
      {"ports:\n  - mode: pci\n    pci: 0000:+3:00.0\n    addresses: [192.0.2.1/24]",
       {"f.yaml:3: ports[0].pci: '0000:+3:00.0' is not a PCI address (like 0000:03:00.0; `lspci "
        "-D` lists them)"}},
      {"ports:\n  - mode: pci\n    pci: 0000:03:00.8\n    addresses: [192.0.2.1/24]",
       {"f.yaml:3: ports[0].pci: '0000:03:00.8' is not a PCI address (like 0000:03:00.0; `lspci "
        "-D` lists them)"}},
      {"ports:\n  - mode: udp\n    pci: 0000:03:00.0",
       {"f.yaml:3: ports[0].pci: only for mode pci"}},
      {"ports:\n  - interface: a/b",
       {"f.yaml:2: ports[0].interface: 'a/b' is not a name of a network interface (see `ip "
        "link`)"}},
      {"ports:\n  - {interface: eth0}\n  - {interface: eth0, mode: af_packet}",
       {"f.yaml:3: ports[1]: interface 'eth0' belongs to another port already"}},
      {"ports:\n  - {name: a, interface: eth0}\n  - {name: a, interface: eth1, mode: af_packet}",
       {"f.yaml:3: ports[1]: another port is named 'a' already"}},
      {"ports:\n  - mode: vdev",
       {"f.yaml:2: ports[0]: mode vdev needs the key 'vdev'",
        "f.yaml:2: ports[0]: mode vdev needs 'addresses': the device has no netdev to take them "
        "from"}},
      {"ports:\n  - interface: eth0\n    vdev: net_null0",
       {"f.yaml:3: ports[0].vdev: only for mode vdev"}},
      {"ports:\n  - mode: af_xdp\n    interface: eth0\n    vlan: 7",
       {"f.yaml:4: ports[0].vlan: only for modes pci and vdev; here the interface itself is "
        "asked"}},
      {"ports:\n  - mode: af_packet\n    interface: eth0\n    segmentation: on",
       {"f.yaml:4: ports[0].segmentation: only for mode udp"}},
      {"ports:\n  - mode: vdev\n    vdev: x\n    addresses: [192.0.2.1, 192.0.2.1/33]",
       {"f.yaml:4: ports[0].addresses[0]: '192.0.2.1' is not ADDRESS/PREFIX (like 192.0.2.1/24 or "
        "2001:db8::1/64)",
        "f.yaml:4: ports[0].addresses[1]: '192.0.2.1/33' is not ADDRESS/PREFIX (like 192.0.2.1/24 "
        "or 2001:db8::1/64)",
        "f.yaml:2: ports[0]: mode vdev needs 'addresses': the device has no netdev to take them "
        "from"}},
      {"ports:\n  - {interface: eth0}\n  - {interface: eth1}",
       {"f.yaml:1: ports: only one port can have mode udp: its sockets serve every address of "
        "this network namespace"}},
      {"ports:\n  - mode: vdev\n    vdev: x\n    addresses: [192.0.2.1/24]\n"
       "    routers: [192.0.2.8, 192.0.2.9, host]",
       {"f.yaml:5: ports[0].routers[1]: at most one router of each address family is possible",
        "f.yaml:5: ports[0].routers[2]: 'host' is not an IP address"}},
      {"ports:\n  - receive_buffer_bytes: 1KiB",
       {"f.yaml:2: ports[0].receive_buffer_bytes: 1KiB is out of range, 64KiB to 1GiB is "
        "allowed"}},
      {"ports:\n  - receive_buffer_bytes: 1 MB",
       {"f.yaml:2: ports[0].receive_buffer_bytes: '1 MB' is not a number of bytes (like 65536, "
        "64KiB, 16MiB, 2GiB)"}},
      {"congestion: {policy: [{sign: cnps}]}",
       {"f.yaml:1: congestion.policy[0]: a rule needs 'sign' and 'algorithm'"}},
      {"congestion: {channel: [swift, reno]}",
       {"f.yaml:1: congestion.channel[1]: there is no algorithm 'reno'"}},
      {"congestion: {native: reno}",
       {"f.yaml:1: congestion.native: 'reno' is not known, use static, dcqcn, dctcp, caqm or "
        "swift"}},
      {"congestion: {window_bytes: 17}",
       {"f.yaml:1: congestion.window_bytes: a window below 4096 cannot hold one packet; 0 chooses "
        "by itself"}},
      {"gateways: {vendor_id: 0015b3}",
       {"f.yaml:1: gateways.vendor_id: '0015b3' belongs to a vendor; the second digit must be 2, "
        "6, a or e"}},
      {"gateways: {vendor_id: 2badd}",
       {"f.yaml:1: gateways.vendor_id: '2badd' is not an OUI of six hexadecimal digits (like "
        "02badd)"}},
      {"gateways: {discovery: disabled, channels: enabled}",
       {"f.yaml:1: gateways.channels: channels need discovery: a peer must have said that it has "
        "them"}},
      {"memory_placement: yes",
       {"f.yaml:1: memory_placement: 'yes' is not known, use enabled, by_pool or disabled"}},
      {"gateways: {authentication: off, key_file: /k}",
       {"f.yaml:1: gateways.key_file: authentication is off, so the keys would not be used"}},
      {"gateways: {protection: required}",
       {"f.yaml:1: gateways.protection: needs keys of the fleet; set key_file"}},
      {"gateways: {discovery: maybe}",
       {"f.yaml:1: gateways.discovery: 'maybe' is not known, use enabled or disabled"}},
      {"default_pool:\n  limits:\n    registered_bytes: 99999999999GiB",
       {"f.yaml:3: default_pool.limits.registered_bytes: '99999999999GiB' is not a number of bytes "
        "(like 65536, 64KiB, 16MiB, 2GiB)"}},
      {"just a text", {"f.yaml:1: a mapping (key: value) is expected"}},
      {"a: [1, 2", {"f.yaml:1: not valid YAML: end of sequence flow not found"}},
      {"workers: 1\n\tname: x",
       {"f.yaml:2: not valid YAML: illegal tab when looking for indentation"}},
      // All problems at once.
      {"workers: x\nlog_level: y\nq: 1",
       {"f.yaml:2: log_level: 'y' is not known, use trace, debug, info, warn or error",
        "f.yaml:1: workers: 'x' is not a whole number", "f.yaml:3: unknown key 'q'"}},
  };
  for (const BadCase& bad : cases) EXPECT_EQ(ProblemsOf(bad.yaml), bad.problems) << bad.yaml;
}

TEST(Config_LongSocketPath, Refused_WithItsLength) {
  const std::string path = "/" + std::string(120, 'x');
  EXPECT_EQ(
      ProblemsOf("attach_socket: {path: " + path + "}"),
      Lines{"f.yaml:1: attach_socket.path: a socket path may have 107 bytes, this one has 121"});
  EXPECT_EQ(ProblemsOf("runtime_dir: " + path).size(), 2u);
}

TEST(Config_File, Unreadable_SaysWhy) {
  EXPECT_EQ(ReadConfig("/nonexistent/c.yaml").problems,
            Lines{"/nonexistent/c.yaml: cannot be read: No such file or directory"});
  EXPECT_EQ(ReadConfig("/tmp").problems, Lines{"/tmp: cannot be read: Is a directory"});
}

TEST(Config_Workers, Zero_IsAQuarterOfTheProcessors) {
  Config config;
  EXPECT_EQ(EffectiveWorkers(config, 1), 1u);
  EXPECT_EQ(EffectiveWorkers(config, 7), 1u);
  EXPECT_EQ(EffectiveWorkers(config, 32), 8u);
  EXPECT_EQ(EffectiveWorkers(config, 1024), 64u);
  config.workers = 5;
  EXPECT_EQ(EffectiveWorkers(config, 1), 5u);
}

TEST(StaticSection, BecomesJsonWithLines) {
  const ConfigResult result = ParseConfig(R"(static:
  tenants:
    - name: tenants/red
      quota: {peak: {qps: 100}}
    - name: 'tenants/"blue"'
  pools:
    - {name: tenants/red/pools/a, spec: {attach: {socket_mode: 0660}, memory: {trusted: true, x: "true"}}}
)",
                                          "f.yaml");
  EXPECT_EQ(result.problems, std::vector<std::string>());
  const std::vector<StaticObject> expected = {
      {"tenants", R"({"name":"tenants/red","quota":{"peak":{"qps":"100"}}})", 3},
      {"tenants", R"({"name":"tenants/\"blue\""})", 5},
      {"pools",
       R"({"name":"tenants/red/pools/a","spec":{"attach":{"socket_mode":432},"memory":{"trusted":true,"x":"true"}}})",
       7}};
  ASSERT_EQ(result.config.static_objects.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result.config.static_objects[i].kind, expected[i].kind);
    EXPECT_EQ(result.config.static_objects[i].json, expected[i].json);
    EXPECT_EQ(result.config.static_objects[i].line, expected[i].line);
  }
}

TEST(StaticSection, OtherKinds_AreUnknownKeys) {
  const ConfigResult result = ParseConfig("static:\n  things: []\n", "f.yaml");
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_NE(result.problems[0].find("f.yaml:2:"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::daemon
