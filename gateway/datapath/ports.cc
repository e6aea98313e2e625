// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/ports.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "gateway/datapath/interface_choice.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::datapath {
namespace {

// Largest headers: IPv6, UDP, BTH, the largest extension header (AtomicETH, 28), XRCETH (4) and
// ICRC. Linux subtracts the same, so that both ends of a link choose the same MTU.
constexpr size_t kLargestHeaders = 40 + 8 + 12 + 28 + 4 + 4;
constexpr uint32_t kLargestPathMtu = 4096;
constexpr uint32_t kSmallestPathMtu = 256;

// The window is a quarter of a queue's receive buffer, so that a few peers may send at once, but at
// least four large packets.
constexpr uint64_t kWindowShare = 4;
constexpr uint64_t kLeastWindow = 16 << 10;
constexpr uint64_t kMostWindow = 256 << 10;

static_assert(port::GidTable::kCapacity == verbs::GidTable::kSize,
              "each GID of a device is one of its queue pairs' table");

// Documentation address, which only a default route covers. Nothing is sent to it.
constexpr uint32_t kAnywhere = 0xC6336401;  // 198.51.100.1

uint8_t IbvMtu(uint32_t path_mtu) {
  return static_cast<uint8_t>(std::countr_zero(path_mtu) - 7);  // 256 is 1, 4096 is 5
}

StatusOr<std::string> ResolveInterface(const PortConfig& config) {
  if (config.interface != "auto") return config.interface;
  auto interfaces = port::ReadInterfaces();
  if (!interfaces.ok()) return interfaces.status();
  if (config.only_address) return InterfaceOf(*interfaces, *config.only_address);
  const auto source = port::SourceFor(wire::Gid::FromV4(kAnywhere));
  return ChooseInterface(*interfaces,
                         source.ok() ? std::optional<wire::Gid>(source.value()) : std::nullopt);
}

}  // namespace

bool Covers(const InterfaceAddress& own, const wire::Gid& destination) {
  if (own.address.IsV4() != destination.IsV4()) return false;
  // An IPv4 address is the last 32 bits of its GID.
  const uint32_t bits = own.prefix_length + (own.address.IsV4() ? 96 : 0);
  const size_t whole = bits / 8;
  if (std::memcmp(own.address.bytes.data(), destination.bytes.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const unsigned mask = 0xFF00u >> (bits % 8) & 0xFF;
  return ((own.address.bytes[whole] ^ destination.bytes[whole]) & mask) == 0;
}

uint32_t PathMtuFor(size_t interface_mtu) {
  if (interface_mtu < kSmallestPathMtu + kLargestHeaders) return 0;
  return std::min(kLargestPathMtu,
                  static_cast<uint32_t>(
                      std::bit_floor(std::min<size_t>(interface_mtu, 1 << 16) - kLargestHeaders)));
}

std::string HostIdentity() {
  std::string identity;
  std::ifstream("/etc/machine-id") >> identity;
  // Containers of one host may share the file, or have none.
  std::array<char, HOST_NAME_MAX + 1> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  return identity + "/" + name.data() + "/";
}

uint64_t NodeGuid(const port::MacAddress& mac, const std::string& fallback) {
  std::array<uint8_t, 8> bytes{};
  if (mac == port::MacAddress{}) {
    // FNV-1a: the same in every build, so that the GUID is the same after an upgrade.
    uint64_t hash = 0xCBF29CE484222325;
    for (const char c : fallback) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(hash >> (8 * i));
    bytes[0] = static_cast<uint8_t>((bytes[0] & 0xFC) | 0x02);
  } else {
    bytes = {
        static_cast<uint8_t>(mac[0] ^ 0x02), mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]};
  }
  uint64_t guid = 0;
  std::memcpy(&guid, bytes.data(), sizeof guid);
  return guid;
}

StatusOr<std::unique_ptr<Ports>> Ports::Create(const Config& config,
                                               const port::SteeringTable& steering,
                                               const DpdkOpener& open_dpdk,
                                               InheritedFds* inherited) {
  std::unique_ptr<Ports> ports(new Ports);
  ports->workers_ = steering.worker_count();
  auto monitor = port::AddressMonitor::Create();
  if (!monitor.ok()) return monitor.status();
  ports->monitor_.emplace(std::move(*monitor));
  for (const PortConfig& port_config : config.ports) {
    Port& port = ports->ports_.emplace_back();
    port.config = port_config;
    port.device.name = "rocegw" + std::to_string(ports->ports_.size() - 1);
    if (Status status = Open(port, open_dpdk, steering, inherited); !status.ok()) {
      return Status(status.error(), "port " + port_config.name + ": " + status.text());
    }
    const size_t before = (ports->ports_.size() - 1) * ports->workers_;
    for (size_t worker = 0; worker < ports->workers_; ++worker) {
      port.recording.push_back(std::make_unique<port::CapturePort>(
          port.backend->queue(worker), ports->taps_, static_cast<uint32_t>(before + worker)));
    }
  }
  return ports;
}

std::string Ports::Offer(OfferedFds& fds) const {
  for (const Port& port : ports_) {
    if (!port.backend->Offer(fds)) return port.config.name;
  }
  return "";
}

Status Ports::Open(Port& port, const DpdkOpener& open_dpdk, const port::SteeringTable& steering,
                   InheritedFds* inherited) {
  const bool own_device = HasNoNetdev(port.config.mode);
  if (!own_device) {
    auto interface = ResolveInterface(port.config);
    if (!interface.ok()) return interface.status();
    port.config.interface = *interface;
    if (Status status = Look(port); !status.ok()) return status;
    if (PathMtuFor(port.interface.mtu) == 0) {
      return {EINVAL, "interface " + port.config.interface + " has an MTU of " +
                          std::to_string(port.interface.mtu) + ", at least " +
                          std::to_string(kSmallestPathMtu + kLargestHeaders) +
                          " is needed: ip link set " + port.config.interface + " mtu 1500"};
    }
  }
  const bool udp = port.config.mode == PortMode::kUdp;
  const bool xdp = port.config.mode == PortMode::kAfXdp;
  if (!udp && !xdp && !open_dpdk) {
    return {ENOTSUP, std::string("there is no mode ") + PortModeName(port.config.mode) +
                         " here; use mode udp"};
  }
  auto backend = udp   ? OpenUdp(port.config, steering, inherited)
                 : xdp ? OpenXdp(port.config, steering)
                       : open_dpdk(port.config, port.interface.mtu, steering);
  if (!backend.ok()) return backend.status();
  port.backend = std::move(*backend);
  // Sockets of mode udp serve an interface of the same name, too.
  if (!own_device && !udp) port.opened_index = port.interface.index;
  return own_device || xdp ? Look(port) : OkStatus();
}

Status Ports::Look(Port& port) {
  if (HasNoNetdev(port.config.mode)) {
    port.backend->Describe(port.interface);
    port.interface.addresses.clear();
    for (const InterfaceAddress& address : port.config.addresses) {
      port.interface.addresses.push_back(
          {address.address, static_cast<uint8_t>(address.prefix_length), false});
    }
  } else {
    auto info = port::ReadInterface(port.config.interface);
    if (!info.ok()) return info.status();
    port.interface = std::move(*info);
    if (port.backend != nullptr)
      port.interface.mtu = std::min(port.interface.mtu, port.backend->frame_mtu());
    if (port.config.only_address) {
      std::erase_if(port.interface.addresses, [&](const port::InterfaceAddress& address) {
        return address.gid != *port.config.only_address;
      });
    }
  }
  port.gids.Update(port.interface.addresses, port.interface.awaits_link_local);
  session::Device& device = port.device;
  device.interface = port.interface.name;
  device.interface_index = port.interface.index;
  device.node_guid =
      NodeGuid(port.interface.mac, HostIdentity() + device.name + port.interface.name);
  device.up = port.interface.link && !port.interface.addresses.empty() && !port.replaced();
  device.active_mtu = IbvMtu(std::max(PathMtuFor(port.interface.mtu), kSmallestPathMtu));
  device.interface_mtu = static_cast<uint32_t>(port.interface.mtu);
  device.link_bytes_per_second = port::LinkBytesPerSecond(port.interface.name);
  device.gids = port.gids.gids();
  return OkStatus();
}

std::vector<port::PacketPort*> Ports::QueuesOf(WorkerIndex worker) const {
  std::vector<port::PacketPort*> queues;
  for (const Port& port : ports_) queues.push_back(&port.backend->queue(worker));
  return queues;
}

std::vector<session::CaptureQueues> Ports::RecordingQueues() const {
  std::vector<session::CaptureQueues> queues(workers_);
  for (size_t worker = 0; worker < workers_; ++worker) {
    queues[worker].plain = QueuesOf(static_cast<WorkerIndex>(worker));
    for (const Port& port : ports_)
      queues[worker].recording.push_back(port.recording[worker].get());
  }
  return queues;
}

std::vector<std::string> Ports::QueueNames() const {
  std::vector<std::string> names;
  for (const Port& port : ports_) {
    for (size_t worker = 0; worker < workers_; ++worker)
      names.push_back(port.config.name + "/worker" + std::to_string(worker));
  }
  return names;
}

std::vector<size_t> Ports::Refresh() {
  return monitor_->Drain() ? LookAgain(false) : std::vector<size_t>();
}

bool Ports::HasOwnDevices() const {
  return std::ranges::any_of(ports_,
                             [](const Port& port) { return HasNoNetdev(port.config.mode); });
}

std::vector<size_t> Ports::RefreshOwnDevices() { return LookAgain(true); }

std::vector<size_t> Ports::LookAgain(bool own_devices_only) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    if (own_devices_only && !HasNoNetdev(port.config.mode)) continue;
    const session::Device before = port.device;
    if (!Look(port).ok()) {
      // The interface does not exist now; its GIDs keep their indices for its return.
      port.interface.up = port.interface.link = false;
      port.device.up = false;
    }
    if (before.up != port.device.up || before.active_mtu != port.device.active_mtu ||
        before.gids != port.device.gids || before.interface_mtu != port.device.interface_mtu ||
        before.interface_index != port.device.interface_index) {
      changed.push_back(i);
    }
  }
  return changed;
}

void Ports::HandOverGids(hand_over::StateStream& state) {
  const auto count = static_cast<uint32_t>(ports_.size());
  if (!state.Require(state.Carry(count) == count, "ports differ")) return;
  for (Port& port : ports_) {
    if (state.reading()) port.gids = {};
    port.gids.HandOver(state);
    if (state.reading() && state.ok()) (void)Look(port);
  }
}

StatusOr<wire::Gid> Ports::SourceFor(const wire::Gid& destination, uint32_t interface_index) const {
  bool kernel_knows = false;
  for (const Port& port : ports_) {
    if (!HasNoNetdev(port.config.mode)) {
      kernel_knows = true;
      continue;
    }
    for (const InterfaceAddress& own : port.config.addresses) {
      if (Covers(own, destination)) return own.address;
    }
  }
  if (kernel_knows) {
    auto source = port::SourceFor(destination, interface_index);
    if (source.ok()) return InsteadOf(*source);
  }
  for (const Port& port : ports_) {
    const auto& routers = port.config.routers;
    if (std::none_of(routers.begin(), routers.end(), [&](const wire::Gid& router) {
          return router.IsV4() == destination.IsV4();
        })) {
      continue;
    }
    for (const InterfaceAddress& own : port.config.addresses) {
      if (own.address.IsV4() == destination.IsV4()) return own.address;
    }
  }
  return Status(ENETUNREACH, "no port leads there");
}

// Returns the configured address instead of the one that the kernel chose, which may belong to
// another gateway on the same interface.
wire::Gid Ports::InsteadOf(const wire::Gid& source) const {
  for (const Port& port : ports_) {
    const auto& own = port.config.only_address;
    if (own && own->IsV4() == source.IsV4()) return *own;
  }
  return source;
}

uint64_t Ports::LinkBytesPerSecond() const {
  uint64_t most = 0;
  for (const Port& port : ports_) most = std::max(most, port.device.link_bytes_per_second);
  return most;
}

uint32_t Ports::SafeWindow() const {
  uint64_t window = kMostWindow;
  for (const Port& port : ports_) {
    const uint64_t buffer = port.backend->receive_buffer_bytes();
    if (buffer != 0) window = std::min(window, buffer / kWindowShare);
  }
  return static_cast<uint32_t>(std::max(window, kLeastWindow));
}

session::PortRow Ports::RowOf(const Port& port) {
  session::PortRow row;
  row.device = port.device.name;
  row.name = port.config.name;
  row.mode = PortModeName(port.config.mode);
  row.interface = port.config.interface;
  row.up = port.device.up;
  row.interface_mtu = static_cast<uint32_t>(port.interface.mtu);
  row.path_mtu = PathMtuFor(port.interface.mtu);
  row.gids = port.device.gids;
  row.addresses_without_gid = static_cast<uint32_t>(port.gids.left_out());
  row.receive_buffer_bytes = port.backend->receive_buffer_bytes();
  row.segmentation = port.backend->segmentation();
  if (!port.interface.link && port.config.interface.empty()) {
    row.note = "the device has no link: its other end is not there yet";
  } else if (port.replaced()) {
    row.note =
        "interface " + port.config.interface + " was removed and made again: restart the gateway";
  } else if (!port.interface.link) {
    row.note = "no link: ip link set " + port.config.interface + " up, or check the cable";
  } else if (port.interface.addresses.empty()) {
    row.note = "no address: ip address add ADDRESS/PREFIX dev " + port.config.interface;
  } else if (row.addresses_without_gid != 0) {
    row.note = std::to_string(row.addresses_without_gid) + " addresses have no GID: a device has " +
               std::to_string(port::GidTable::kCapacity);
  } else if (port.config.mode == PortMode::kUdp &&
             row.receive_buffer_bytes < port.config.receive_buffer_bytes) {
    row.note = "the kernel granted a receive buffer of " +
               std::to_string(row.receive_buffer_bytes) + " of " +
               std::to_string(port.config.receive_buffer_bytes) +
               " bytes: raise sysctl net.core.rmem_max or grant CAP_NET_ADMIN";
  } else {
    row.note = port.backend->note();
  }
  return row;
}

void Ports::AddRows(session::StateSnapshot& snapshot) const {
  for (const Port& port : ports_) {
    snapshot.ports.push_back(RowOf(port));
    for (size_t worker = 0; worker < workers_; ++worker) {
      session::PortQueueRow row;
      row.port = port.config.name;
      row.worker = static_cast<uint16_t>(worker);
      const QueueCounts counts = CountsOf(static_cast<size_t>(&port - ports_.data()), worker);
      row.counters.assign(counts.begin(), counts.end());
      snapshot.port_queues.push_back(std::move(row));
    }
  }
}

Ports::QueueCounts Ports::CountsOf(size_t device, size_t worker) const {
  QueueCounts counts{};
  if (const auto before = before_.find({device, worker}); before != before_.end())
    counts = before->second;
  const port::PortCounters& counters =
      std::as_const(*ports_[device].backend).queue(worker).counters();
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] += (counters.*port::kPortCounters[i].field).Read();
  return counts;
}

std::string Ports::NameOf(const Port& port, size_t worker, size_t counter) {
  return "port " + port.config.name + " worker " + std::to_string(worker) + " " +
         port::kPortCounters[counter].name;
}

Ports::Counts Ports::CountsByName() const {
  Counts found;
  for (size_t device = 0; device < ports_.size(); ++device) {
    for (size_t worker = 0; worker < workers_; ++worker) {
      const QueueCounts counts = CountsOf(device, worker);
      for (size_t i = 0; i < counts.size(); ++i)
        if (counts[i] != 0) found[NameOf(ports_[device], worker, i)] = counts[i];
    }
  }
  return found;
}

void Ports::GoOnFrom(const Counts& counts) {
  for (size_t device = 0; device < ports_.size(); ++device) {
    for (size_t worker = 0; worker < workers_; ++worker) {
      QueueCounts& before = before_[{device, worker}];
      before = {};
      for (size_t i = 0; i < before.size(); ++i) {
        const auto found = counts.find(NameOf(ports_[device], worker, i));
        if (found != counts.end()) before[i] = found->second;
      }
    }
  }
}

PortTraffic Ports::TrafficOf(size_t device) const {
  PortTraffic traffic;
  constexpr std::pair<std::string_view, uint64_t PortTraffic::*> kParts[] = {
      {"tx_packets", &PortTraffic::tx_packets}, {"tx_bytes", &PortTraffic::tx_bytes},
      {"tx_lost", &PortTraffic::tx_lost},       {"rx_packets", &PortTraffic::rx_packets},
      {"rx_bytes", &PortTraffic::rx_bytes},     {"rx_overflow", &PortTraffic::rx_overflow}};
  for (size_t worker = 0; worker < workers_; ++worker) {
    const QueueCounts counts = CountsOf(device, worker);
    for (size_t i = 0; i < counts.size(); ++i) {
      for (const auto& [name, part] : kParts)
        if (name == port::kPortCounters[i].name) traffic.*part += counts[i];
    }
  }
  return traffic;
}

}  // namespace rocegw::datapath
