// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

#include "gateway/flow/congestion.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::daemon {
namespace {

using datapath::kMaxWorkers;
using datapath::kPortModes;
using process::CheckAbsolutePath;
using process::CheckSocketPath;
using process::Section;

constexpr uint32_t kMaxPorts = 16;
// struct ifreq holds 15 characters.
constexpr size_t kMaxInterfaceName = 15;
constexpr uint64_t kMaxCount = 16u << 20;
constexpr uint32_t kMaxCnpInterval = 1000000;  // us
constexpr uint64_t kUnboundedBytes = 1ull << 60;

template <typename E, size_t N>
std::vector<std::pair<const char*, E>> Choices(const std::pair<const char*, E> (&table)[N]) {
  return {std::begin(table), std::end(table)};
}

// Reads the congestion section: each algorithm is a mapping of its parameters, under its name.
void ReadCongestion(Section& section, Config& config) {
  std::vector<std::pair<const char*, flow::CcKind>> kinds;
  for (size_t i = 0; i < flow::kCcKinds; ++i) {
    const auto kind = static_cast<flow::CcKind>(i);
    const flow::CcAlgorithm& algorithm = flow::AlgorithmOf(kind);
    kinds.emplace_back(algorithm.name, kind);
    if (algorithm.parameters.empty()) continue;
    section.Nested(algorithm.name, [&](Section& own) {
      for (size_t p = 0; p < algorithm.parameters.size(); ++p) {
        const flow::CcParameter& parameter = algorithm.parameters[p];
        own.Unsigned(parameter.name, parameter.least, parameter.most,
                     config.congestion.values[i][p]);
      }
    });
  }
  section.Choice("native", kinds, config.native_congestion);
  if (section.Has("channel")) config.channel_congestion = 0;
  section.TextList("channel", [&](const std::string& name) -> std::string {
    const flow::CcKind kind = flow::FindCcKind(name);
    if (kind == flow::CcKind::kCount) return "there is no algorithm '" + name + "'";
    config.channel_congestion |= flow::OptionOf(kind);
    return "";
  });
  std::vector<std::pair<const char*, flow::CcSign>> signs;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(flow::CcSign::kUnmarkedLoss); ++i)
    signs.emplace_back(flow::NameOf(static_cast<flow::CcSign>(i)).data(),
                       static_cast<flow::CcSign>(i));
  const auto read_policy = [&](const char* key, flow::CcPolicy& policy) {
    section.NestedList(key, [&](Section& entry) {
      flow::CcRule rule;
      entry.Choice("sign", signs, rule.sign);
      entry.Unsigned("threshold", 0u, UINT32_MAX, rule.threshold);
      entry.Choice("algorithm", kinds, rule.algorithm);
      if (!entry.Has("sign") || !entry.Has("algorithm")) {
        entry.Problem("a rule needs 'sign' and 'algorithm'");
      } else if (policy.count == flow::CcPolicy::kMostRules) {
        entry.Problem("there can be at most 8 rules");
      }
      policy.Add(rule);
    });
  };
  read_policy("policy", config.congestion_policy);
  read_policy("channel_policy", config.channel_policy);
  section.Bool("ecn", config.congestion.ecn);
  section.Nested("cnp", [&](Section& cnp) {
    cnp.Bool("send", config.congestion.send_cnps);
    auto interval = static_cast<uint32_t>(config.congestion.cnp_interval.ns / 1000);
    cnp.Unsigned("interval_us", 0u, kMaxCnpInterval, interval);
    config.congestion.cnp_interval = Microseconds(interval);
    uint32_t dscp = config.congestion.cnp_traffic_class >> 2;
    cnp.Unsigned("dscp", 0u, 63u, dscp);
    config.congestion.cnp_traffic_class = static_cast<uint8_t>(dscp << 2 | wire::kEcnEct0);
  });
}

bool IsLabel(const std::string& text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string CheckLabel(const std::string& text) {
  if (IsLabel(text)) return "";
  return "'" + text + "' must be 1 to 63 of a-z, 0-9 and '-', with no '-' at either end";
}

std::string CheckInterface(const std::string& text) {
  if (text.empty() || text.size() > kMaxInterfaceName ||
      text.find_first_of("/ \t:") != std::string::npos || text == "." || text == "..") {
    return "'" + text + "' is not a name of a network interface (see `ip link`)";
  }
  return "";
}

std::string CheckListenAddress(const std::string& text) {
  if (text.empty()) return "";
  const size_t colon = text.rfind(':');
  std::string wrong =
      "'" + text + "' is not ADDRESS:PORT (like 127.0.0.1:7474 or [::1]:7474; empty: off)";
  if (colon == std::string::npos) return wrong;
  std::string host = text.substr(0, colon);
  uint32_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port > 65535) return wrong;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    in6_addr v6;
    return inet_pton(AF_INET6, host.c_str(), &v6) == 1 ? "" : wrong;
  }
  in_addr v4;
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 ? "" : wrong;
}

std::string ReadMac(const std::string& text, MacAddress& mac) {
  MacAddress value{};
  bool good = text.size() == 17;
  for (size_t i = 0; good && i < 6; ++i) {
    const char* at = text.data() + 3 * i;
    const auto parsed = std::from_chars(at, at + 2, value[i], 16);
    good = parsed.ec == std::errc() && parsed.ptr == at + 2 && (i == 5 || at[2] == ':');
  }
  if (!good) return "'" + text + "' is not a MAC address (like 02:00:00:00:00:01)";
  mac = value;
  return "";
}

std::string ReadInterfaceAddress(const std::string& text, InterfaceAddress& value) {
  std::string wrong = "'" + text + "' is not ADDRESS/PREFIX (like 192.0.2.1/24 or 2001:db8::1/64)";
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return wrong;
  const auto address = wire::ParseGid(text.substr(0, slash));
  if (!address) return wrong;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, value.prefix_length);
  if (parsed.ec != std::errc() || parsed.ptr != end ||
      value.prefix_length > (address->IsV4() ? 32u : 128u)) {
    return wrong;
  }
  value.address = *address;
  return "";
}

// Returns the problem of a text that is not a PCI address with its domain, as lspci -D prints it.
std::string CheckPciAddress(const std::string& text) {
  constexpr std::string_view kShape = "hhhh:hh:hh.h";
  const auto fits = [](char shape, char c) {
    return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : shape == c;
  };
  // A bus has 32 devices, a device 8 functions.
  if (text.size() == kShape.size() &&
      std::equal(kShape.begin(), kShape.end(), text.begin(), fits) && text[8] < '2' &&
      text.back() < '8')
    return "";
  return "'" + text + "' is not a PCI address (like 0000:03:00.0; `lspci -D` lists them)";
}

void ReadDeviceKeys(Section& section, PortConfig& port) {
  section.Text("pci", CheckPciAddress, port.pci);
  // As the kernel writes it.
  for (char& c : port.pci) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  section.Text(
      "vdev",
      [](const std::string& text) {
        return text.empty() ? "a DPDK device is expected (like net_memif0,role=server)" : "";
      },
      port.vdev);
  section.Unsigned("mtu", 576u, 9600u, port.mtu);
  section.Unsigned("vlan", 0u, 4094u, port.vlan);
  std::string ignored;
  section.Text(
      "mac", [&](const std::string& text) { return ReadMac(text, port.mac); }, ignored);
  section.TextList("addresses", [&](const std::string& text) {
    InterfaceAddress address;
    std::string wrong = ReadInterfaceAddress(text, address);
    if (wrong.empty()) port.addresses.push_back(address);
    return wrong;
  });
  section.TextList("routers", [&](const std::string& text) -> std::string {
    const auto router = wire::ParseGid(text);
    if (!router) return "'" + text + "' is not an IP address";
    if (std::any_of(port.routers.begin(), port.routers.end(),
                    [&](const wire::Gid& other) { return other.IsV4() == router->IsV4(); })) {
      return "at most one router of each address family is possible";
    }
    port.routers.push_back(*router);
    return "";
  });
  section.NestedList("neighbours", [&](Section& entry) {
    NeighbourConfig neighbour;
    std::string text;
    entry.Text(
        "address",
        [&](const std::string& value) -> std::string {
          const auto address = wire::ParseGid(value);
          if (!address) return "'" + value + "' is not an IP address";
          neighbour.address = *address;
          return "";
        },
        text);
    entry.Text(
        "mac", [&](const std::string& value) { return ReadMac(value, neighbour.mac); }, text);
    if (!entry.Has("address") || !entry.Has("mac")) {
      entry.Problem("address and mac are both needed");
    }
    port.neighbours.push_back(neighbour);
  });
}

void ReadPort(Section& section, size_t index, PortConfig& port) {
  port.name = "port" + std::to_string(index);
  section.Text("name", CheckLabel, port.name);
  section.Choice("mode", Choices(kPortModes), port.mode);
  section.Text("interface", CheckInterface, port.interface);
  section.Choice<Segmentation>(
      "segmentation",
      {{"auto", Segmentation::kAuto}, {"on", Segmentation::kOn}, {"off", Segmentation::kOff}},
      port.segmentation);
  section.Choice<Steering>("steering", {{"qpn", Steering::kQpn}, {"hash", Steering::kHash}},
                           port.steering);
  section.Bytes("receive_buffer_bytes", 64u << 10, 1u << 30, port.receive_buffer_bytes);
  ReadDeviceKeys(section, port);

  const bool pci = port.mode == PortMode::kPci;
  if (datapath::HasNoNetdev(port.mode)) {
    const std::string mode = std::string("mode ") + datapath::PortModeName(port.mode);
    const std::string device = pci ? "pci" : "vdev";
    const std::string other = pci ? "vdev" : "pci";
    if (!section.Has(device)) section.Problem(mode + " needs the key '" + device + "'");
    if (section.Has(other)) section.ProblemAt(other, "only for mode " + other);
    if (port.addresses.empty()) {
      section.Problem(mode + " needs 'addresses': the device has no netdev to take them from");
    }
    if (section.Has("interface")) {
      section.ProblemAt("interface", mode + " has no netdev, remove this key");
    } else {
      port.interface.clear();
    }
  } else {
    if (section.Has("pci")) section.ProblemAt("pci", "only for mode pci");
    if (section.Has("vdev")) section.ProblemAt("vdev", "only for mode vdev");
    for (const char* key : {"mtu", "vlan", "mac", "addresses", "routers", "neighbours"}) {
      if (section.Has(key)) {
        section.ProblemAt(key, "only for modes pci and vdev; here the interface itself is asked");
      }
    }
  }
  if (port.mode != PortMode::kUdp) {
    for (const char* key : {"segmentation", "steering", "receive_buffer_bytes"}) {
      if (section.Has(key)) section.ProblemAt(key, "only for mode udp");
    }
  }
}

void ReadPorts(Section& top, Config& config) {
  if (!top.Has("ports")) {
    top.NestedList("ports", [](Section&) {});
    return;
  }
  config.ports.clear();
  std::set<std::string> names;
  std::set<std::string> interfaces;
  top.NestedList("ports", [&](Section& section) {
    PortConfig port;
    ReadPort(section, config.ports.size(), port);
    if (!names.insert(port.name).second) {
      section.Problem("another port is named '" + port.name + "' already");
    }
    if (!port.interface.empty() && !interfaces.insert(port.interface).second) {
      section.Problem("interface '" + port.interface + "' belongs to another port already");
    }
    config.ports.push_back(std::move(port));
  });
  if (std::count_if(config.ports.begin(), config.ports.end(),
                    [](const PortConfig& port) { return port.mode == PortMode::kUdp; }) > 1) {
    top.ProblemAt("ports",
                  "only one port can have mode udp: its sockets serve every address of this "
                  "network namespace");
  }
  if (config.ports.empty()) top.ProblemAt("ports", "at least one port is needed");
  if (config.ports.size() > kMaxPorts) {
    top.ProblemAt("ports", "at most " + std::to_string(kMaxPorts) + " ports are possible");
  }
}

void ReadSocket(Section& top, std::string_view key, SocketConfig& socket) {
  top.Nested(key, [&](Section& section) {
    section.Text("path", CheckSocketPath, socket.path);
    std::string text;
    section.Text(
        "mode",
        [&](const std::string& value) -> std::string {
          const char* end = value.data() + value.size();
          uint32_t mode = 0;
          const auto parsed = std::from_chars(value.data(), end, mode, 8);
          if (parsed.ec != std::errc() || parsed.ptr != end || mode > 0777) {
            return "'" + value + "' is not a file mode (octal, like 0660)";
          }
          socket.mode = mode;
          return "";
        },
        text);
    section.Text(
        "owner",
        [](const std::string& value) {
          return std::count(value.begin(), value.end(), ':') > 1 || value == ":"
                     ? "'" + value + "' is not USER, USER:GROUP or :GROUP"
                     : "";
        },
        socket.owner);
  });
}

void ReadLimits(Section& pool, LimitsConfig& limits) {
  pool.Nested("limits", [&](Section& section) {
    const std::pair<const char*, uint32_t*> counts[] = {
        {"sessions", &limits.sessions}, {"qps", &limits.qps}, {"cqs", &limits.cqs},
        {"srqs", &limits.srqs},         {"mrs", &limits.mrs}, {"pds", &limits.pds},
        {"cm_ids", &limits.cm_ids}};
    for (const auto& [key, target] : counts) {
      section.Unsigned(key, 0u, static_cast<uint32_t>(kMaxCount), *target);
    }
    section.Bytes("registered_bytes", 0, kUnboundedBytes, limits.registered_bytes);
    section.Bytes("segment_bytes", 2u << 20, kUnboundedBytes, limits.segment_bytes);
    section.Bytes("heap_bytes", 2u << 20, kUnboundedBytes, limits.heap_bytes);
    section.Bytes("remapped_bytes", 0, kUnboundedBytes, limits.remapped_bytes);
  });
}

// Reads six hexadecimal digits, the bytes of the OUI in written order.
std::string ReadVendorId(const std::string& text, uint32_t& value) {
  const char* const end = text.data() + text.size();
  uint32_t id = 0;
  const auto parsed = std::from_chars(text.data(), end, id, 16);
  if (text.size() != 6 || parsed.ec != std::errc() || parsed.ptr != end)
    return "'" + text + "' is not an OUI of six hexadecimal digits (like 02badd)";
  // A vendor's ID would promise features of its devices.
  constexpr uint32_t kLocallyAdministered = 0x020000;
  constexpr uint32_t kGroup = 0x010000;
  if ((id & (kLocallyAdministered | kGroup)) != kLocallyAdministered)
    return "'" + text + "' belongs to a vendor; the second digit must be 2, 6, a or e";
  value = id;
  return "";
}

void ReadGateways(Section& section, GatewaysConfig& gateways) {
  section.Choice<bool>("discovery", {{"enabled", true}, {"disabled", false}}, gateways.discovery);
  section.Choice<bool>("channels", {{"enabled", true}, {"disabled", false}}, gateways.channels);
  section.Unsigned("paths", 1u, wire::kMostPaths, gateways.paths);
  std::string text;
  section.Text(
      "vendor_id",
      [&](const std::string& value) { return ReadVendorId(value, gateways.vendor_id); }, text);
  section.Choice<PeerAuthentication>("authentication",
                                     {{"off", PeerAuthentication::kOff},
                                      {"preferred", PeerAuthentication::kPreferred},
                                      {"required", PeerAuthentication::kRequired}},
                                     gateways.authentication);
  section.Choice<FrameProtection>("protection",
                                  {{"off", FrameProtection::kOff},
                                   {"preferred", FrameProtection::kPreferred},
                                   {"required", FrameProtection::kRequired},
                                   {"encrypt", FrameProtection::kEncrypt}},
                                  gateways.protection);
  section.Text("key_file", CheckAbsolutePath, gateways.key_file);
  if (!gateways.key_file.empty() && gateways.authentication == PeerAuthentication::kOff)
    section.ProblemAt("key_file", "authentication is off, so the keys would not be used");
  if (gateways.protection != FrameProtection::kOff) {
    if (gateways.authentication == PeerAuthentication::kOff)
      section.ProblemAt("protection", "needs authentication: peers agree on it by tagged packets");
    if (gateways.key_file.empty())
      section.ProblemAt("protection", "needs keys of the fleet; set key_file");
  }
  if (gateways.discovery) return;
  if (gateways.channels && section.Has("channels"))
    section.ProblemAt("channels",
                      "channels need discovery: a peer must have said that it has them");
  gateways.channels = false;
}

void ReadWaiting(Section& section, datapath::WaitingConfig& waiting) {
  section.Choice<WaitMode>("mode",
                           {{"busy", WaitMode::kBusy},
                            {"event", WaitMode::kEvent},
                            {"event_batch", WaitMode::kEventBatch},
                            {"hybrid", WaitMode::kHybrid},
                            {"adaptive", WaitMode::kAdaptive}},
                           waiting.mode);
  section.Unsigned("yield_after_us", 0u, 1000000u, waiting.yield_after_us);
  section.Unsigned("sleep_after_us", 0u, 1000000u, waiting.sleep_after_us);
  // The scheduler takes slices of 0.1 to 100 ms.
  section.Unsigned("slice_us", 0u, 100000u, waiting.slice_us);
  if (waiting.slice_us != 0 && waiting.slice_us < 100)
    section.ProblemAt("slice_us", "the kernel has no slices below 100; 0 leaves the slice to it");
  section.Unsigned("realtime_priority", 0u, 99u, waiting.realtime_priority);
  if (waiting.realtime_priority != 0 && waiting.mode == WaitMode::kBusy)
    section.ProblemAt("realtime_priority",
                      "a real-time thread that never sleeps would stop all else on its processor");
  section.Bool("keep_processors_awake", waiting.keep_processors_awake);
}

void ReadTop(Section& top, Config& config) {
  top.Text("name", CheckLabel, config.name);
  top.Text("runtime_dir", CheckAbsolutePath, config.runtime_dir);
  // Sockets lie in the runtime directory unless they are configured.
  config.attach_socket.path = config.runtime_dir + "/attach.sock";
  config.grpc_socket.path = config.runtime_dir + "/grpc.sock";
  ReadSocket(top, "attach_socket", config.attach_socket);
  ReadSocket(top, "grpc_socket", config.grpc_socket);
  for (const SocketConfig* socket : {&config.attach_socket, &config.grpc_socket}) {
    const std::string wrong = CheckSocketPath(socket->path);
    if (!wrong.empty()) top.ProblemAt("runtime_dir", socket->path + ": " + wrong);
  }
  if (config.attach_socket.path == config.grpc_socket.path) {
    top.ProblemAt("grpc_socket", "attach_socket and grpc_socket have the same path");
  }
  top.Choice("log_level", process::LogLevels(), config.log_level);
  top.Unsigned("workers", 0u, kMaxWorkers, config.workers);
  top.Bool("pin_workers", config.pin_workers);
  top.Nested("waiting", [&](Section& section) { ReadWaiting(section, config.waiting); });
  ReadPorts(top, config);
  top.Choice<MemoryPlacement>("memory_placement",
                              {{"enabled", MemoryPlacement::kEnabled},
                               {"by_pool", MemoryPlacement::kByPool},
                               {"disabled", MemoryPlacement::kDisabled}},
                              config.memory_placement);
  top.Nested("metrics", [&](Section& section) {
    section.Text("address", CheckListenAddress, config.metrics_address);
  });
  top.Nested("dpdk", [&](Section& section) {
    section.Choice<bool>("huge_pages", {{"auto", true}, {"off", false}}, config.dpdk.huge_pages);
    section.Unsigned("memory_mb", 64u, 65536u, config.dpdk.memory_mb);
    section.TextList("eal_args", [&](const std::string& text) -> std::string {
      config.dpdk.eal_args.push_back(text);
      return text.empty() ? "an empty argument" : "";
    });
  });
  top.Nested("copy_engine", [&](Section& section) {
    datapath::CopyEngineConfig& engine = config.copy_engine;
    section.Choice<CopyEngineMode>("mode",
                                   {{"off", CopyEngineMode::kOff},
                                    {"auto", CopyEngineMode::kAuto},
                                    {"on", CopyEngineMode::kOn}},
                                   engine.mode);
    section.TextList("devices", [&](const std::string& text) -> std::string {
      engine.devices.push_back(text);
      return text.empty() ? "an empty name" : "";
    });
    section.Unsigned("minimum_bytes", 0u, 4096u, engine.minimum_bytes);
  });
  top.Nested("congestion", [&](Section& section) {
    ReadCongestion(section, config);
    section.Bytes("window_bytes", 0, 1u << 30, config.window_bytes);
    if (config.window_bytes != 0 && config.window_bytes < 4096) {
      section.ProblemAt("window_bytes",
                        "a window below 4096 cannot hold one packet; 0 chooses by itself");
    }
  });
  top.Nested("gateways", [&](Section& section) { ReadGateways(section, config.gateways); });
  top.Nested("default_pool", [&](Section& section) {
    section.Bool("trusted", config.default_pool.trusted);
    section.Choice<bool>("remap", {{"allow", true}, {"deny", false}},
                         config.default_pool.remap_allowed);
    ReadLimits(section, config.default_pool.limits);
  });
  top.Nested("static", [&](Section& section) {
    for (const char* kind : {"gateway", "cc_policies", "tenants", "pools"}) {
      section.Json(kind, [&](const std::string& json, int line) {
        config.static_objects.push_back({kind, json, line});
      });
    }
  });
}

}  // namespace

ConfigResult ParseConfig(const std::string& yaml, const std::string& file) {
  return process::ParseConfigText<Config>(yaml, file, ReadTop);
}

ConfigResult ReadConfig(const std::string& file) {
  return process::ReadConfigFile<Config>(file, ReadTop);
}

}  // namespace rocegw::daemon
