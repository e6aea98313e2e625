// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_port.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/instance_lock.h"
#include "gateway/port/kernel/interface_features.h"
#include "gateway/port/kernel/kernel_neighbours.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/xdp/xdp_program.h"
#include "gateway/port/xdp/xdp_queue.h"
#include "gateway/port/xdp/xdp_socket.h"
#include "gateway/port/xdp/xdp_transmitter.h"

namespace rocegw::port {
namespace {

// Frames of three chunks carry any MTU that other modes carry.
constexpr size_t kLargestXdpMtu = 9216;
// MTU of the largest frame that one chunk receives.
constexpr size_t kChunkMtu = kXdpChunk - kXdpHeadroom - kEthernetHeaderLength;
constexpr size_t kLeastReceiveChunks = 256;

size_t ChunksFor(size_t max_datagram) {
  return (XdpQueue::kDataOffset + max_datagram + kXdpChunk - 1) / kXdpChunk;
}

// Returns a descriptor that is readable when one of the sockets is; valid without sockets, too.
StatusOr<UniqueFd> WakeFd(const std::vector<XdpReceiver>& receivers) {
  UniqueFd fd(receivers.empty() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
                                : ::epoll_create1(EPOLL_CLOEXEC));
  bool added = fd.valid();
  for (const XdpReceiver& receiver : receivers) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    added = added && ::epoll_ctl(fd.get(), EPOLL_CTL_ADD, receiver.socket->fd(), &event) == 0;
  }
  if (!added)
    return Status(errno, std::string("cannot wait for AF_XDP sockets: ") + std::strerror(errno));
  return fd;
}

}  // namespace

struct XdpPortGroup::State {
  // Division of packet memory, in chunks: the receive chunks of every socket, then the transmit
  // chunks of every worker.
  struct Layout {
    size_t workers = 0;
    size_t sockets = 0;
    size_t transmitters = 0;    // the first sockets
    size_t receive_chunks = 0;  // per socket
    size_t packets = 0;         // per worker
    size_t chunks_per_packet = 1;

    size_t transmit_chunks() const { return packets * chunks_per_packet; }  // per worker
    size_t transmit_chunks_of(size_t socket) const {
      if (socket >= transmitters) return 0;
      return transmit_chunks() * ((workers + transmitters - 1) / transmitters);
    }
    size_t bytes() const {
      return (sockets * receive_chunks + workers * transmit_chunks()) * kXdpChunk;
    }
    uint64_t receive_begin(size_t socket) const { return socket * receive_chunks * kXdpChunk; }
    uint64_t transmit_begin(size_t worker) const {
      return (sockets * receive_chunks + worker * transmit_chunks()) * kXdpChunk;
    }
  };

  Status Open(const XdpPortConfig& config, size_t workers);
  Status Look(const XdpPortConfig& config);
  Status OpenSockets(const XdpPortConfig& config, size_t workers);
  Status TryOpenSockets(const XdpPortConfig& config, size_t workers, bool several_chunks);
  Status MakeQueues();

  std::shared_ptr<void> silence;
  InterfaceInfo interface;
  InterfaceQueues interface_queues;
  std::unique_ptr<XdpProgram> program;
  Layout layout;
  size_t mtu = 0;
  XdpMemory memory;
  std::vector<std::unique_ptr<XdpSocket>> sockets;
  std::vector<std::unique_ptr<XdpTransmitter>> transmitters;
  std::unique_ptr<KernelNeighbours> link;  // calls `program`
  std::vector<UniqueFd> wake_fds;
  std::vector<std::unique_ptr<XdpQueue>> queues;
};

Status XdpPortGroup::State::Look(const XdpPortConfig& config) {
  auto info = ReadInterface(config.interface);
  if (!info.ok()) return info.status();
  interface = std::move(*info);
  auto features = ReadFeatures(config.interface);
  if (!features.ok()) return features.status();
  if (features->driver.find("VLAN") != std::string::npos) {
    return {EINVAL, "interface " + config.interface +
                        " is a VLAN, which mode af_xdp does not serve: its frames have a tag when "
                        "they reach the XDP program; use mode af_packet or udp"};
  }
  if (interface.loopback) {
    return {EINVAL,
            "interface " + config.interface +
                " is the loopback interface, which carries no Ethernet frames; use mode udp"};
  }
  if (!features->ethernet) {
    return {EINVAL, "interface " + config.interface +
                        " carries no Ethernet frames, which mode af_xdp needs; use mode udp"};
  }
  interface_queues = ReadQueues(config.interface);
  return OkStatus();
}

Status XdpPortGroup::State::OpenSockets(const XdpPortConfig& config, size_t workers) {
  // Some drivers have zero copy for frames of one chunk only.
  bool several_chunks = interface.mtu > kChunkMtu;
  Status first;
  while (true) {
    Status status = TryOpenSockets(config, workers, several_chunks);
    if (status.ok()) return status;
    if (first.ok()) first = status;
    if (status.error() != EINVAL || sockets.empty()) return first;
    if (sockets.size() == 1) {
      // A kernel before Linux 6.6 refuses the flag for frames of several chunks.
      if (!several_chunks) return first;
      several_chunks = false;
    } else {
      // The kernel refuses queues that the driver does not use.
      if (!interface_queues.allocated) return first;
      interface_queues.receive = static_cast<uint32_t>(sockets.size() - 1);
      first = OkStatus();
    }
  }
}

// Without frames of several chunks the port takes frames of one chunk only. On failure the last of
// `sockets` is the one that the kernel refused to bind, if it got that far.
Status XdpPortGroup::State::TryOpenSockets(const XdpPortConfig& config, size_t workers,
                                           bool several_chunks) {
  sockets.clear();
  mtu = std::min(interface.mtu, several_chunks ? kLargestXdpMtu : kChunkMtu);
  const size_t queues_of_interface = interface_queues.receive;
  layout = {.workers = workers,
            .sockets = queues_of_interface,
            // The kernel sends nothing from a socket whose queue number no transmit queue has.
            .transmitters = std::min<size_t>(queues_of_interface, interface_queues.transmit),
            .receive_chunks = std::max(config.receive_buffers * workers / queues_of_interface,
                                       kLeastReceiveChunks),
            .packets = std::max<size_t>(config.packets_per_queue, 64),
            .chunks_per_packet = ChunksFor(MaxDatagram(mtu))};
  auto mapped = XdpMemory::Map(layout.bytes());
  if (!mapped.ok()) return mapped.status();
  memory = std::move(*mapped);
  for (size_t i = 0; i < layout.sockets; ++i) {
    const XdpSocketConfig socket_config{
        .interface_index = interface.index,
        .interface = config.interface,
        .receive_queue = static_cast<uint32_t>(i),
        .memory = &memory,
        .shared_with = i == 0 ? -1 : sockets[0]->fd(),
        .receive_chunks = static_cast<uint32_t>(layout.receive_chunks),
        .transmit_chunks = static_cast<uint32_t>(layout.transmit_chunks_of(i)),
        .several_chunks = several_chunks,
        .copy = !program->in_driver()};
    auto socket = XdpSocket::Open(socket_config);
    if (!socket.ok()) return socket.status();
    sockets.push_back(std::move(*socket));
    if (Status status = sockets.back()->Bind(socket_config); !status.ok()) return status;
  }
  return OkStatus();
}

Status XdpPortGroup::State::MakeQueues() {
  const bool shared = layout.workers > layout.transmitters;
  const XdpTransmitLayout transmit{.begin = layout.transmit_begin(0),
                                   .bytes_per_worker = layout.transmit_chunks() * kXdpChunk,
                                   .workers = layout.workers};
  for (size_t i = 0; i < layout.transmitters; ++i)
    transmitters.push_back(std::make_unique<XdpTransmitter>(*sockets[i], transmit, shared));
  for (size_t worker = 0; worker < layout.workers; ++worker) {
    XdpQueueConfig queue{.worker = worker,
                         .memory = &memory,
                         .transmitter = transmitters[worker % transmitters.size()].get(),
                         .first_packet = layout.transmit_begin(worker),
                         .packets = layout.packets,
                         .chunks_per_packet = layout.chunks_per_packet,
                         .max_datagram = MaxDatagram(mtu),
                         .link = link.get()};
    for (size_t i = worker; i < sockets.size(); i += layout.workers)
      queue.receivers.push_back({sockets[i].get(), layout.receive_begin(i), layout.receive_chunks});
    auto wake_fd = WakeFd(queue.receivers);
    if (!wake_fd.ok()) return wake_fd.status();
    wake_fds.push_back(std::move(*wake_fd));
    queue.wake_fd = wake_fds.back().get();
    queues.push_back(std::make_unique<XdpQueue>(queue));
  }
  return OkStatus();
}

Status XdpPortGroup::State::Open(const XdpPortConfig& config, size_t workers) {
  if (Status status = Look(config); !status.ok()) return status;
  auto quiet = SilenceKernel(config.udp_port);
  if (!quiet.ok()) return quiet.status();
  silence = std::move(*quiet);
  auto loaded = XdpProgram::Load(config.udp_port);
  if (!loaded.ok()) return loaded.status();
  program = std::make_unique<XdpProgram>(std::move(*loaded));
  auto neighbours = KernelNeighbours::Create(
      config.interface, [this](const std::vector<wire::Gid>& own) { program->SetAddresses(own); });
  if (!neighbours.ok()) return neighbours.status();
  link = std::move(*neighbours);
  // How the sockets are bound depends on where the program runs. Until they are in its map, it
  // leaves every frame to the kernel.
  if (Status status = program->Attach(config.interface, interface.index); !status.ok())
    return status;
  if (Status status = OpenSockets(config, workers); !status.ok()) return status;
  if (Status status = MakeQueues(); !status.ok()) return status;
  for (size_t i = 0; i < sockets.size(); ++i) {
    if (Status status = program->AddSocket(static_cast<uint32_t>(i), sockets[i]->fd());
        !status.ok())
      return status;
  }
  return OkStatus();
}

XdpPortGroup::XdpPortGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
XdpPortGroup::~XdpPortGroup() = default;

StatusOr<std::unique_ptr<XdpPortGroup>> XdpPortGroup::Create(const XdpPortConfig& config,
                                                             const SteeringTable& steering) {
  auto state = std::make_unique<State>();
  if (Status status = state->Open(config, steering.worker_count()); !status.ok()) return status;
  return std::unique_ptr<XdpPortGroup>(new XdpPortGroup(std::move(state)));
}

uint64_t XdpPortGroup::LockedMemory(const XdpPortConfig& config, size_t workers, size_t mtu) {
  const size_t chunks = ChunksFor(MaxDatagram(std::min(mtu, kLargestXdpMtu)));
  return workers * (config.receive_buffers + config.packets_per_queue * chunks) * kXdpChunk;
}

size_t XdpPortGroup::queues() const { return state_->queues.size(); }
PacketPort& XdpPortGroup::queue(size_t index) { return *state_->queues[index]; }
size_t XdpPortGroup::frame_mtu() const { return state_->mtu; }

std::string XdpPortGroup::Shortcoming() const {
  const std::string& name = state_->interface.name;
  std::string text;
  if (state_->mtu < state_->interface.mtu) {
    text = "frames are limited to an MTU of " + std::to_string(state_->mtu) +
           (state_->mtu == kLargestXdpMtu ? ", the largest of mode af_xdp; "
                                          : ": longer ones need Linux 6.6; ");
  }
  if (!state_->program->in_driver()) {
    text += "the XDP program runs in the kernel's generic path: the driver of " + name +
            " does not take it, or not with this MTU; ";
  } else if (!state_->sockets[0]->zero_copy()) {
    text +=
        "the kernel copies every frame (copy mode): the driver of " + name + " has no zero copy";
    if (state_->mtu > kChunkMtu) text += ", or not with an MTU above " + std::to_string(kChunkMtu);
    text += "; ";
  }
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

}  // namespace rocegw::port
