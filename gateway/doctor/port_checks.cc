// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/port_checks.h"

#include <algorithm>
#include <set>

#include "gateway/port/kernel/local_address.h"

namespace rocegw::doctor {
namespace {

using rules::Check;

// Path MTU of peers on links with 1500 bytes.
constexpr uint32_t kUsualPathMtu = 1024;
constexpr uint32_t kLargestPathMtu = 4096;
constexpr size_t kMostNamed = 5;

std::string NameOf(const Facts& facts, const PortFacts& port) {
  return facts.gateway.gateway + "/ports/" + port.name;
}

// Describes the holder for display.
std::string HolderText(const PortHolder& holder, const std::vector<std::string>& rxe_devices) {
  if (holder.pid != 0) {
    return "process " + std::to_string(holder.pid) + " (" + holder.command + ") of user " +
           std::to_string(holder.uid);
  }
  if (!rxe_devices.empty()) return "the kernel's soft-RoCE (" + rxe_devices.front() + ")";
  return "the kernel or a process of another container, user " + std::to_string(holder.uid);
}

std::string Remedy(const PortHolder& holder, const std::vector<std::string>& rxe_devices) {
  if (holder.pid != 0) return "stop it: kill " + std::to_string(holder.pid);
  if (!rxe_devices.empty()) return "rdma link delete " + rxe_devices.front();
  return "ss -lunpe 'sport = :4791' on the host";
}

std::string Names(const std::vector<wire::Gid>& addresses) {
  std::string text;
  for (size_t i = 0; i < std::min(addresses.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : ", ") + wire::AddressText(addresses[i]);
  if (addresses.size() > kMostNamed)
    text += " and " + std::to_string(addresses.size() - kMostNamed) + " more";
  return text;
}

// On a software interface only the kernel merges or splits packets.
bool IsSoftware(const port::InterfaceFeatures& features) {
  static const std::set<std::string> kDrivers = {"veth", "tun", "dummy", "bridge"};
  return features.loopback || kDrivers.contains(features.driver);
}

struct Offload {
  const char* names[3];  // kernel names; nullptr: end
  const char* word;      // feature name of `ethtool -K`
  bool of_cards_only;
  const char* reason;
};

constexpr Offload kOffloads[] = {
    {{"tx-checksum-ip-generic", "tx-checksum-ipv4", nullptr},
     "tx",
     false,
     "the kernel refuses sends of several packets in one call: each packet is a call"},
    {{"rx-gro", nullptr, nullptr},
     "gro",
     true,
     "received packets are not merged: each is handled on its own"},
    {{"rx-checksum", nullptr, nullptr},
     "rx",
     true,
     "checksums of received packets are computed by the processor"},
    {{"tx-generic-segmentation", nullptr, nullptr},
     "gso",
     false,
     "sends of several packets are cut before they reach the interface's queue"},
};

}  // namespace

Diagnosis CheckUdpPort(const Facts& facts) {
  Check check("udp_port", facts.gateway.gateway);
  if (!facts.gateway.wants_udp_port) return std::move(check).Ok("no port needs UDP 4791");
  size_t own = 0;
  const PortHolder* other = nullptr;
  for (const PortHolder& holder : facts.host.udp_port) {
    if (holder.own) {
      ++own;
    } else if (other == nullptr) {
      other = &holder;
    }
  }
  const auto& rxe = facts.host.rxe_devices;
  if (other != nullptr) {
    return std::move(check).Fail("UDP 4791 is held by " + HolderText(*other, rxe),
                                 "packets that are for the gateway go there, or it cannot start",
                                 Remedy(*other, rxe));
  }
  if (own == 0) {
    return std::move(check).Fail("nobody holds UDP 4791",
                                 "the kernel answers packets with \"port unreachable\"",
                                 "restart rocegwd, and report it as a bug");
  }
  return std::move(check).Ok("UDP 4791 is this gateway's, " + std::to_string(own) +
                             (own == 1 ? " socket" : " sockets"));
}

Diagnosis CheckLink(const Facts& facts, const PortFacts& port) {
  Check check("link", NameOf(facts, port));
  const std::string where = port.interface.empty() ? "its own device" : port.interface;
  if (!port.up) {
    return std::move(check).Fail(where + " is down", "nothing can be sent or received",
                                 port.note.empty() ? "ip link set " + where + " up" : port.note);
  }
  return std::move(check).Ok(port.mode + " on " + where + " is up");
}

Diagnosis CheckPathMtu(const Facts& facts, const PortFacts& port) {
  Check check("path_mtu", NameOf(facts, port));
  const std::string found =
      "MTU " + std::to_string(port.interface_mtu) + ", path MTU " + std::to_string(port.path_mtu);
  const std::string set =
      port.interface.empty() ? "ports[].mtu: " : "ip link set " + port.interface + " mtu ";
  if (port.longer_qps != 0) {
    return std::move(check).Fail(
        found + ", but " + std::to_string(port.longer_qps) + " queue pairs have " +
            std::to_string(port.longest_path_mtu),
        "their full packets do not fit the link any more and are given up",
        set + std::to_string(port.longest_path_mtu + 104) + ", or connect them anew");
  }
  if (port.path_mtu < kUsualPathMtu) {
    return std::move(check).Warn(
        found,
        "programs and peers that ask for " + std::to_string(kUsualPathMtu) + " do not get it",
        set + "1500");
  }
  return std::move(check).Ok(
      found + (port.path_mtu < kLargestPathMtu ? "; an MTU of 4200 would make it 4096" : ""));
}

Diagnosis CheckAddresses(const Facts& facts, const PortFacts& port) {
  Check check("addresses", NameOf(facts, port));
  if (port.addresses_without_gid == 0) return std::move(check).Ok("each has a GID");
  return std::move(check).Warn(
      std::to_string(port.addresses_without_gid) + " addresses of " + port.interface +
          " have no GID, because a device has at most " + std::to_string(port::GidTable::kCapacity),
      "programs cannot bind to them or use them as a source",
      "remove addresses from " + port.interface + ", or give them to another interface and port");
}

Diagnosis CheckReceiveBuffer(const Facts& facts, const PortFacts& port) {
  Check check("receive_buffer", NameOf(facts, port));
  if (port.receive_buffer_asked == 0) return std::move(check).Ok("the device has its own");
  std::string found = std::to_string(port.receive_buffer) + " of " +
                      std::to_string(port.receive_buffer_asked) + " bytes granted";
  if (port.receive_overflows != 0)
    found += ", " + std::to_string(port.receive_overflows) + " packets did not fit";
  if (port.receive_buffer >= port.receive_buffer_asked && port.receive_overflows == 0)
    return std::move(check).Ok(found);
  const char* const reason = "packets are lost in bursts and sent again";
  if (port.receive_buffer < port.receive_buffer_asked) {
    return std::move(check).Warn(
        found, reason,
        "sysctl -w net.core.rmem_max=" + std::to_string(port.receive_buffer_asked) +
            ", or grant CAP_NET_ADMIN; then restart rocegwd");
  }
  return std::move(check).Warn(found, reason,
                               "more workers, or a larger ports[].receive_buffer_bytes");
}

Diagnosis CheckOffloads(const Facts& facts, const PortFacts& port) {
  Check check("offloads", NameOf(facts, port));
  const auto known = facts.host.interfaces.find(port.interface);
  if (port.mode != "udp" || known == facts.host.interfaces.end() ||
      known->second.features.features.empty()) {
    return std::move(check).Ok("none of the kernel's");
  }
  const port::InterfaceFeatures& all = known->second.features;
  std::string off;
  std::string words;
  std::string reason;
  std::string lacks;
  for (const Offload& offload : kOffloads) {
    if (offload.of_cards_only && IsSoftware(all)) continue;
    bool on = false;
    bool changeable = false;
    for (const char* const name : offload.names) {
      const auto feature = name == nullptr ? all.features.end() : all.features.find(name);
      if (feature == all.features.end()) continue;
      on = on || feature->second.on;
      changeable = changeable || feature->second.changeable;
    }
    if (on) continue;
    if (!changeable) {
      lacks += std::string(lacks.empty() ? "" : ", ") + offload.word;
      continue;
    }
    off += std::string(off.empty() ? "" : ", ") + offload.word;
    words += std::string(" ") + offload.word + " on";
    if (reason.empty()) reason = offload.reason;
  }
  const std::string driver = all.driver.empty() ? port.interface : all.driver;
  if (!off.empty()) {
    return std::move(check).Warn(off + " off at " + port.interface + " (" + driver + ")", reason,
                                 "ethtool -K " + port.interface + words);
  }
  return std::move(check).Ok(lacks.empty() ? "on at " + port.interface + " (" + driver + ")"
                                           : driver + " lacks " + lacks + ", all else is on");
}

Diagnosis CheckNeighbours(const Facts& facts, const PortFacts& port) {
  Check check("neighbours", NameOf(facts, port));
  const auto known = facts.host.interfaces.find(port.interface);
  if (known == facts.host.interfaces.end()) return std::move(check).Ok("none of the kernel's");
  const InterfaceFacts& interface = known->second;
  const std::string show = "ip neighbour show dev " + port.interface;
  if (!interface.failed_routers.empty()) {
    return std::move(check).Fail(
        "the router " + Names(interface.failed_routers) + " does not answer",
        "nothing beyond this link can be reached",
        show + "; check cable, VLAN and `ip route show default dev " + port.interface + "`");
  }
  if (!interface.failed_neighbours.empty()) {
    return std::move(check).Warn(std::to_string(interface.failed_neighbours.size()) +
                                     " do not answer: " + Names(interface.failed_neighbours),
                                 "packets to them are not sent",
                                 show + "; check that these hosts are up and on this link");
  }
  return std::move(check).Ok("all that were asked for answer");
}

}  // namespace rocegw::doctor
