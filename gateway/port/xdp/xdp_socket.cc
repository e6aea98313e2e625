// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_socket.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace rocegw::port {
namespace {

constexpr uint16_t kUseSeveralChunks = 1 << 4;  // XDP_USE_SG of Linux 6.6
constexpr uint32_t kLeastRingEntries = 64;
// The kernel frees the queue of a closed socket in the background, after a restart perhaps later
// than the new process binds its own.
constexpr std::chrono::seconds kBindPatience{2};
constexpr std::chrono::milliseconds kBindInterval{20};

Status SocketFailed(const XdpSocketConfig& config, const std::string& what, int error) {
  std::string text = "interface " + config.interface + ", receive queue " +
                     std::to_string(config.receive_queue) + ": " + what + ": " +
                     std::strerror(error);
  if (error == EPERM || error == EACCES) {
    text += "; mode af_xdp needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; mode udp needs none";
  } else if (error == EAFNOSUPPORT) {
    text += "; this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS); use mode af_packet or udp";
  } else if (error == ENOBUFS || error == ENOMEM) {
    text += "; raise the limit on locked memory (in systemd: LimitMEMLOCK=)";
  } else if (error == EBUSY) {
    text += "; another program has an AF_XDP socket on this queue";
  }
  return {error, text};
}

uint32_t RingEntries(uint32_t wanted) { return std::bit_ceil(std::max(wanted, kLeastRingEntries)); }

}  // namespace

StatusOr<XdpMemory> XdpMemory::Map(size_t bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Status(errno, "no memory for " + std::to_string(bytes >> 20) +
                             " MiB of packet buffers: " + std::strerror(errno));
  }
  return XdpMemory(static_cast<uint8_t*>(data), bytes);
}

XdpMemory::XdpMemory(XdpMemory&& other) noexcept { *this = std::move(other); }

XdpMemory& XdpMemory::operator=(XdpMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

XdpMemory::~XdpMemory() {
  if (data_ != nullptr) (void)::munmap(data_, size_);
}

template <typename Entry>
Status XdpSocket::MapRing(const XdpSocketConfig& config, int option, off_t page,
                          const xdp_ring_offset& offsets, uint32_t entries, XdpRing<Entry>& ring) {
  if (::setsockopt(fd(), SOL_XDP, option, &entries, sizeof entries) != 0)
    return SocketFailed(config, "cannot set a ring's size", errno);
  const size_t size = offsets.desc + size_t{entries} * sizeof(Entry);
  void* const data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd(), page);
  if (data == MAP_FAILED) return SocketFailed(config, "cannot map a ring", errno);
  mappings_.emplace_back(static_cast<uint8_t*>(data), size);
  ring = XdpRing<Entry>(mappings_.back().data(), offsets, entries);
  return OkStatus();
}

Status XdpSocket::MapRings(const XdpSocketConfig& config) {
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
    return SocketFailed(config, "the kernel does not describe its rings", errno);
  const uint32_t received = RingEntries(config.receive_chunks);
  const uint32_t sent = RingEntries(config.transmit_chunks);
  Status status = MapRing(config, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, offsets.fr,
                          received, rings_.fill);
  if (status.ok()) {
    status = MapRing(config, XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr,
                     sent, rings_.completion);
  }
  if (status.ok())
    status = MapRing(config, XDP_RX_RING, XDP_PGOFF_RX_RING, offsets.rx, received, rings_.receive);
  if (status.ok())
    status = MapRing(config, XDP_TX_RING, XDP_PGOFF_TX_RING, offsets.tx, sent, rings_.transmit);
  return status;
}

StatusOr<std::unique_ptr<XdpSocket>> XdpSocket::Open(const XdpSocketConfig& config) {
  std::unique_ptr<XdpSocket> socket(new XdpSocket);
  socket->fd_.Reset(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!socket->fd_.valid()) return SocketFailed(config, "cannot open an AF_XDP socket", errno);
  if (config.shared_with < 0) {
    xdp_umem_reg memory{};
    memory.addr = reinterpret_cast<uint64_t>(config.memory->data());
    memory.len = config.memory->size();
    memory.chunk_size = kXdpChunk;
    if (::setsockopt(socket->fd(), SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) != 0) {
      return SocketFailed(config,
                          "cannot register " + std::to_string(config.memory->size() >> 20) +
                              " MiB of packet memory",
                          errno);
    }
  }
  if (Status status = socket->MapRings(config); !status.ok()) return status;
  return socket;
}

Status XdpSocket::Bind(const XdpSocketConfig& config) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = config.interface_index;
  address.sxdp_queue_id = config.receive_queue;
  if (config.shared_with >= 0) {
    // The flags are those of the socket that registered the memory.
    address.sxdp_flags = XDP_SHARED_UMEM;
    address.sxdp_shared_umem_fd = static_cast<uint32_t>(config.shared_with);
  } else {
    // Without XDP_COPY the kernel takes zero copy where the driver has it. A driver with zero copy
    // gives frames to its own XDP program only, not to one in the generic path.
    address.sxdp_flags = XDP_USE_NEED_WAKEUP;
    if (config.copy) address.sxdp_flags |= XDP_COPY;
    if (config.several_chunks) address.sxdp_flags |= kUseSeveralChunks;
  }
  const auto deadline = std::chrono::steady_clock::now() + kBindPatience;
  int error = EBUSY;
  while (error == EBUSY) {
    if (::bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return OkStatus();
    error = errno;
    if (std::chrono::steady_clock::now() > deadline) break;
    if (error == EBUSY) std::this_thread::sleep_for(kBindInterval);
  }
  return SocketFailed(config, "cannot bind an AF_XDP socket", error);
}

bool XdpSocket::zero_copy() const {
  xdp_options options{};
  socklen_t length = sizeof options;
  return ::getsockopt(fd(), SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
         (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

uint64_t XdpSocket::Dropped() const {
  xdp_statistics statistics{};
  socklen_t length = sizeof statistics;
  if (::getsockopt(fd(), SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;
}

}  // namespace rocegw::port
