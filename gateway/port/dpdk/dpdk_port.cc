// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/dpdk/dpdk_port.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "gateway/port/dpdk/dpdk_packet_socket.h"
#include "gateway/port/dpdk/dpdk_queue.h"
#include "gateway/port/instance_lock.h"
#include "gateway/port/kernel/kernel_neighbours.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/neighbour/own_neighbours.h"

namespace rocegw::port {
namespace {

// Bytes that af_packet needs in front of a frame (tpacket2 header and alignment), rounded up.
constexpr size_t kFrameOverhead = 256;
constexpr size_t kFrameCount = 1024;
constexpr size_t kBlockBytes = 65536;
constexpr size_t kPoolCache = 128;
constexpr uint32_t kFrameWrapping = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
constexpr size_t kLargestMtu = 9216;

// Returns the size of a receive buffer: any frame of the MTU fits one buffer.
size_t FrameBytes(size_t mtu) { return std::bit_ceil(mtu + kFrameOverhead); }

Status Failed(const std::string& what, int result) {
  const int error = result < 0 ? -result : (rte_errno != 0 ? rte_errno : EIO);
  return {error, what + ": " + rte_strerror(error)};
}

std::string DeviceName(const std::string& device) { return device.substr(0, device.find(',')); }

// Returns true for a device that is named by its PCI address.
bool IsPci(const std::string& name) { return name.find(':') != std::string::npos; }

std::string DeviceRemedy(const std::string& name) {
  if (!IsPci(name)) return "is its name right, are its rights there: CAP_NET_RAW for af_packet?";
  return "is it there (`lspci -D`), has DPDK a driver for it (packages librte-net-*), and is it "
         "bound "
         "to vfio-pci: `driverctl set-override " +
         name + " vfio-pci`?";
}

// Calls set_up(node), which returns 0 or an error, for the NUMA node of the device; if that fails,
// for any node: the device's may have no memory.
template <typename SetUp>
int SetUpNear(int numa_node, SetUp set_up) {
  const int result = set_up(static_cast<unsigned>(numa_node));
  if (result == 0 || numa_node == SOCKET_ID_ANY) return result;
  return set_up(static_cast<unsigned>(SOCKET_ID_ANY));
}

// Takes memory of the NUMA node of the device, or any where that node has none.
StatusOr<rte_mempool*> MakePool(size_t count, size_t private_bytes, size_t frame_bytes,
                                int numa_node) {
  // The kernel may preempt a thread inside a ring operation; these rings let the other threads
  // continue.
  static std::atomic<unsigned> made = 0;
  const std::string name = "rocegw" + std::to_string(made++);
  rte_mempool* pool = nullptr;
  const int result = SetUpNear(numa_node, [&](unsigned node) {
    pool = rte_pktmbuf_pool_create_by_ops(name.c_str(), static_cast<unsigned>(count), kPoolCache,
                                          static_cast<uint16_t>(private_bytes),
                                          static_cast<uint16_t>(frame_bytes + RTE_PKTMBUF_HEADROOM),
                                          static_cast<int>(node), "ring_mt_rts");
    return pool == nullptr ? -1 : 0;
  });
  if (result != 0) {
    return Failed("no memory for " + std::to_string(count) + " packet buffers of " +
                      std::to_string(frame_bytes) + " bytes; raise memory_mb under dpdk, or " +
                      "provide huge pages",
                  -rte_errno);
  }
  return pool;
}

}  // namespace

struct DpdkPortGroup::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Status Open(const DpdkPortConfig& config, size_t workers);
  Status Probe(const std::string& device);
  Status Configure(const DpdkPortConfig& config, size_t workers);
  Status SetUpQueues(const DpdkPortConfig& config);
  Status MakeQueues(const DpdkPortConfig& config, size_t workers);
  Status ReadMac(const MacAddress& wanted);
  int numa_node() const { return rte_eth_dev_socket_id(device); }

  std::shared_ptr<void> silence;
  std::unique_ptr<LinkLayer> link;
  std::string name;
  bool probed = false;
  bool started = false;
  uint16_t device = 0;
  size_t mtu = 0;
  MacAddress mac{};
  uint16_t receive_queues = 0;
  uint16_t transmit_queues = 0;
  std::vector<rte_mempool*> pools;
  std::vector<std::mutex> transmit_locks;
  std::vector<std::unique_ptr<DpdkQueue>> queues;
};

DpdkPortGroup::State::~State() {
  queues.clear();
  // The memif driver frees a connection's state on DPDK's interrupt thread when the peer leaves,
  // without synchronising with a close here. Such a device stays open until the process ends.
  if (probed && name.starts_with("net_memif")) return;
  if (started) (void)rte_eth_dev_stop(device);
  if (probed) {
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(device, &info) == 0;
    (void)rte_eth_dev_close(device);
    if (known) (void)rte_dev_remove(info.device);
  }
  for (rte_mempool* pool : pools) {
    // Another device of this process may still hold buffers (net_ring passes them on): such a pool
    // must stay.
    if (rte_mempool_full(pool) != 0) rte_mempool_free(pool);
  }
}

Status DpdkPortGroup::State::Probe(const std::string& device_string) {
  name = DeviceName(device_string);
  uint16_t existing = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &existing) == 0) {
    return {EEXIST, "DPDK device " + name + " is in use by another port of this gateway"};
  }
  const int result = rte_dev_probe(device_string.c_str());
  if (result < 0 || rte_eth_dev_get_port_by_name(name.c_str(), &device) != 0) {
    return Failed("DPDK cannot open device " + device_string + " (" + DeviceRemedy(name) + ")",
                  result < 0 ? result : -ENODEV);
  }
  probed = true;
  return OkStatus();
}

Status DpdkPortGroup::State::Configure(const DpdkPortConfig& config, size_t workers) {
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(device, &info); result != 0) {
    return Failed("device " + name + " says nothing about itself", result);
  }
  receive_queues = static_cast<uint16_t>(std::min<size_t>(workers, info.max_rx_queues));
  transmit_queues = static_cast<uint16_t>(std::min<size_t>(workers, info.max_tx_queues));
  if (receive_queues == 0 || transmit_queues == 0) {
    return {ENODEV, "device " + name + " cannot both send and receive"};
  }
  if (mtu < info.min_mtu || mtu > info.max_mtu) {
    return {EINVAL, "device " + name + " takes an MTU of " + std::to_string(info.min_mtu) + " to " +
                        std::to_string(info.max_mtu) + ", not " + std::to_string(mtu)};
  }
  rte_eth_conf conf{};
  // Software devices report the Ethernet default as their limit and carry whatever fits the
  // buffers.
  conf.rxmode.mtu = static_cast<uint32_t>(mtu);
  if (name.starts_with("net_") && info.max_rx_pktlen > kFrameWrapping) {
    conf.rxmode.mtu = std::min(conf.rxmode.mtu, info.max_rx_pktlen - kFrameWrapping);
  }
  const uint64_t spread = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  if (receive_queues > 1 && spread != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = spread;
  }
  if (const int result = rte_eth_dev_configure(device, receive_queues, transmit_queues, &conf);
      result != 0) {
    return Failed("device " + name + " refuses its configuration", result);
  }
  // A device without a kernel interface must receive neighbour discovery, and frames to a
  // configured MAC address. A shared device keeps the kernel's settings.
  if (config.interface.empty()) {
    (void)rte_eth_allmulticast_enable(device);
    (void)rte_eth_promiscuous_enable(device);
  }
  return OkStatus();
}

Status DpdkPortGroup::State::SetUpQueues(const DpdkPortConfig& config) {
  auto receive_descriptors = static_cast<uint16_t>(config.descriptors);
  auto transmit_descriptors = static_cast<uint16_t>(config.descriptors);
  if (const int result =
          rte_eth_dev_adjust_nb_rx_tx_desc(device, &receive_descriptors, &transmit_descriptors);
      result != 0) {
    return Failed("device " + name + " takes no number of descriptors", result);
  }
  const size_t frame_bytes = FrameBytes(mtu);
  for (uint16_t i = 0; i < receive_queues; ++i) {
    auto pool = MakePool(std::max<size_t>(config.receive_buffers, receive_descriptors + 256U), 0,
                         frame_bytes, numa_node());
    if (!pool.ok()) return pool.status();
    pools.push_back(*pool);
    const int result = SetUpNear(numa_node(), [&](unsigned node) {
      return rte_eth_rx_queue_setup(device, i, receive_descriptors, node, nullptr, *pool);
    });
    if (result != 0) return Failed("device " + name + " refuses a receive queue", result);
  }
  for (uint16_t i = 0; i < transmit_queues; ++i) {
    const int result = SetUpNear(numa_node(), [&](unsigned node) {
      return rte_eth_tx_queue_setup(device, i, transmit_descriptors, node, nullptr);
    });
    if (result != 0) return Failed("device " + name + " refuses a transmit queue", result);
  }
  return OkStatus();
}

Status DpdkPortGroup::State::MakeQueues(const DpdkPortConfig& config, size_t workers) {
  const bool shared = transmit_queues < workers;
  transmit_locks = std::vector<std::mutex>(shared ? transmit_queues : 0);
  for (size_t i = 0; i < workers; ++i) {
    auto pool = MakePool(std::max<size_t>(config.packets_per_queue, 64), DpdkQueue::private_bytes(),
                         FrameBytes(mtu), numa_node());
    if (!pool.ok()) return pool.status();
    pools.push_back(*pool);
    const bool receives = i < receive_queues;
    const size_t transmit_queue = i % transmit_queues;
    const int packet_socket = receives ? PacketSocketOf(device, static_cast<uint16_t>(i)) : -1;
    // A port that resolves neighbours itself must receive their frames.
    if (packet_socket >= 0 && !config.interface.empty())
      KeepToUdpPort(packet_socket, config.udp_port);
    queues.push_back(std::make_unique<DpdkQueue>(
        DpdkQueueConfig{.device = device,
                        .receive_queue = receives ? static_cast<int>(i) : -1,
                        .transmit_queue = static_cast<uint16_t>(transmit_queue),
                        .transmit_lock = shared ? &transmit_locks[transmit_queue] : nullptr,
                        .transmit_pool = *pool,
                        .max_datagram = MaxDatagram(mtu),
                        .vlan = config.vlan,
                        .udp_checksum = config.udp_checksum,
                        .link = link.get(),
                        .wake_fd = packet_socket}));
  }
  return OkStatus();
}

Status DpdkPortGroup::State::ReadMac(const MacAddress& wanted) {
  rte_ether_addr address{};
  if (wanted != MacAddress{}) {
    std::copy(wanted.begin(), wanted.end(), address.addr_bytes);
    // A device that cannot change its address still receives frames to this one: it is promiscuous.
    (void)rte_eth_dev_default_mac_addr_set(device, &address);
    mac = wanted;
    return OkStatus();
  }
  if (const int result = rte_eth_macaddr_get(device, &address); result != 0) {
    return Failed("device " + name + " has no MAC address; configure one", result);
  }
  std::copy_n(address.addr_bytes, mac.size(), mac.begin());
  return OkStatus();
}

Status DpdkPortGroup::State::Open(const DpdkPortConfig& config, size_t workers) {
  mtu = config.mtu;
  if (!config.interface.empty()) {
    auto info = ReadInterface(config.interface);
    if (!info.ok()) return info.status();
    mtu = info->mtu;
    auto quiet = SilenceKernel(config.udp_port);
    if (!quiet.ok()) return quiet.status();
    silence = std::move(*quiet);
    auto neighbours = KernelNeighbours::Create(config.interface);
    if (!neighbours.ok()) return neighbours.status();
    link = std::move(*neighbours);
    mac = link->mac();
  } else if (config.network.addresses.empty()) {
    return {EINVAL,
            "device " + config.device + " has no kernel interface: configure its addresses"};
  }
  if (mtu < 576 || mtu > kLargestMtu) {
    return {EINVAL, "an MTU of " + std::to_string(mtu) + " is not supported; 576 to " +
                        std::to_string(kLargestMtu) + " are"};
  }
  if (Status status = Probe(config.device); !status.ok()) return status;
  if (Status status = Configure(config, workers); !status.ok()) return status;
  if (link == nullptr) {
    if (Status status = ReadMac(config.mac); !status.ok()) return status;
    link = std::make_unique<OwnNeighbours>(mac, config.network);
  }
  if (Status status = SetUpQueues(config); !status.ok()) return status;
  if (const int result = rte_eth_dev_start(device); result != 0) {
    return Failed("device " + name + " does not start", result);
  }
  started = true;
  return MakeQueues(config, workers);
}

// Sends through the queueing discipline like all other traffic of a shared interface: a bypass
// hides packets from tcpdump and shaping, and loses them while the device is busy.
std::string AfPacketDevice(const std::string& interface, size_t queues, size_t mtu) {
  const size_t frame = FrameBytes(mtu);
  return "net_af_packet_" + interface + ",iface=" + interface +
         ",qpairs=" + std::to_string(queues) + ",framesz=" + std::to_string(frame) +
         ",blocksz=" + std::to_string(std::max(frame, kBlockBytes)) +
         ",framecnt=" + std::to_string(kFrameCount) + ",qdisc_bypass=0";
}

DpdkPortGroup::DpdkPortGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
DpdkPortGroup::~DpdkPortGroup() = default;

StatusOr<std::unique_ptr<DpdkPortGroup>> DpdkPortGroup::Create(const DpdkPortConfig& config,
                                                               const SteeringTable& steering) {
  auto state = std::make_unique<State>();
  if (Status status = state->Open(config, steering.worker_count()); !status.ok()) return status;
  return std::unique_ptr<DpdkPortGroup>(new DpdkPortGroup(std::move(state)));
}

size_t DpdkPortGroup::queues() const { return state_->queues.size(); }
PacketPort& DpdkPortGroup::queue(size_t index) { return *state_->queues[index]; }
size_t DpdkPortGroup::receive_queues() const { return state_->receive_queues; }
const MacAddress& DpdkPortGroup::mac() const { return state_->mac; }
size_t DpdkPortGroup::mtu() const { return state_->mtu; }

bool DpdkPortGroup::link() const {
  rte_eth_link status{};
  return rte_eth_link_get_nowait(state_->device, &status) == 0 &&
         status.link_status == RTE_ETH_LINK_UP;
}

}  // namespace rocegw::port
