// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/client/fake_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace rocegw::testing {

namespace {

constexpr uint64_t kChunkSize = 4u << 20;

[[noreturn]] void Die(const char* what) {
  perror(what);
  abort();
}

template <typename T>
std::vector<uint8_t> Bytes(const T& value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  return {from, from + sizeof value};
}

void SendMessage(int socket, const std::vector<uint8_t>& bytes, int fd) {
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  // The client may be gone already; the test notices that elsewhere.
  (void)!sendmsg(socket, &header, MSG_NOSIGNAL);
}

rocegw_device_reply DescribeDevice(uint32_t index, const FakeOptions& options) {
  rocegw_device_reply reply{};
  snprintf(reply.name, sizeof reply.name, "rocegw%u", index);
  snprintf(reply.interface, sizeof reply.interface, "eth%u", index);
  snprintf(reply.firmware, sizeof reply.firmware, "0.1.0-fake");
  reply.node_guid = 0x0100fffe00c00002ULL + index;
  reply.max_mr_size = uint64_t{1} << 40;
  reply.interface_index = 7 + index;
  reply.vendor_id = 0x00c0ff;
  reply.vendor_part_id = 1;
  reply.hardware_version = 1;
  reply.max_qp = 1024;
  reply.max_qp_wr = 4096;
  reply.max_sge = 16;
  reply.max_inline = 256;
  reply.max_cq = 512;
  reply.max_cqe = 1 << 16;
  reply.max_mr = 4096;
  reply.max_mw = 128;
  reply.max_pd = 256;
  reply.max_ah = 1 << 20;
  reply.max_rd_atomic = 16;
  reply.max_message = 1u << 30;
  reply.port_state = 4;
  reply.max_mtu = 5;
  reply.active_mtu = 3;
  reply.local_ack_delay = 15;
  reply.active_width = 2;
  reply.active_speed = 32;
  reply.gid_table_length = 16;
  if (options.placement) reply.features |= ROCEGW_DEVICE_PLACEMENT;
  return reply;
}

}  // namespace

struct FakeDaemon::Connection {
  int socket = -1;
  bool announced = false;
  FakeChunk chunks[2];  // written by the client, and by the daemon
  std::vector<int> wake_fds;
  std::vector<rocegw_worker_line*> lines;
};

rocegw_send_wqe* FakeQp::SendSlot(uint32_t index) const {
  const uint32_t stride = rocegw_sq_stride(reply.max_send_sge);
  return reinterpret_cast<rocegw_send_wqe*>(sq + size_t{index & (reply.sq_entries - 1)} * stride);
}

rocegw_sge* FakeQp::SendSges(uint32_t index) const {
  return reinterpret_cast<rocegw_sge*>(reinterpret_cast<uint8_t*>(SendSlot(index)) +
                                       sizeof(rocegw_send_wqe));
}

uint8_t* FakeQp::SendPayload(uint32_t index) const {
  return sq_payload + size_t{index & (reply.sq_entries - 1)} * reply.sq_payload_stride;
}

uint8_t* FakeQp::ReceivePayload(uint32_t index) const {
  return rq_payload + size_t{index & (reply.rq_entries - 1)} * reply.rq_payload_stride;
}

bool FakeQp::DoorbellRang() const {
  const uint32_t leaf = reply.doorbell_bit / 64;
  const uint64_t summary = __atomic_exchange_n(&doorbell->summary, 0, __ATOMIC_SEQ_CST);
  const uint64_t bits = __atomic_exchange_n(&doorbell->leaf[leaf], 0, __ATOMIC_SEQ_CST);
  return (summary & (uint64_t{1} << leaf)) != 0 &&
         (bits & (uint64_t{1} << (reply.doorbell_bit % 64))) != 0;
}

FakeDaemon::FakeDaemon(FakeOptions options) : options_(std::move(options)) {
  char directory[] = "/tmp/rocegw-fake.XXXXXX";
  if (mkdtemp(directory) == nullptr) testing::Die("mkdtemp");
  directory_ = directory;
  path_ = options_.socket_path.empty() ? directory_ + "/attach.sock" : options_.socket_path;
  if (options_.sysfs) {
    for (uint32_t i = 0; i < options_.devices; ++i) {
      const std::string device = directory_ + "/sys/class/infiniband/rocegw" + std::to_string(i);
      std::filesystem::create_directories(device);
      std::ofstream(device + "/board_id") << "rocegw\n";
    }
  }
  unlink(path_.c_str());
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path_.c_str());
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 16) != 0) {
    testing::Die("listen");
  }
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

FakeDaemon::~FakeDaemon() {
  Die();
  unlink(path_.c_str());
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void FakeDaemon::Die() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof one);
  thread_.join();
  CloseAll();
}

void FakeDaemon::CloseAll() {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    if (connection->socket >= 0) close(connection->socket);
    for (const int fd : connection->wake_fds) close(fd);
    for (FakeChunk& chunk : connection->chunks) {
      if (chunk.base != nullptr) munmap(chunk.base, chunk.size);
      if (chunk.fd >= 0) close(chunk.fd);
    }
  }
  connections_.clear();
  while (!regions_.empty()) DestroyRegion(regions_.begin()->first);
  for (const auto& [handle, fd] : events_) close(fd);
  events_.clear();
  close(listener_);
  close(stop_);
}

void FakeDaemon::Run() {
  for (;;) {
    std::vector<pollfd> watched = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : connections_) {
      watched.push_back({connection->socket, POLLIN, 0});
    }
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    // Before new ones are accepted: `watched` numbers the current connections.
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents != 0) Serve(*connections_[i - 2]);
    }
    if (watched[1].revents != 0) {
      auto connection = std::make_unique<Connection>();
      connection->socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      ++accepted_;
      connections_.push_back(std::move(connection));
    }
  }
}

void FakeDaemon::HoldAnswers(size_t count) {
  const std::lock_guard lock(mutex_);
  hold_ = count;
}

void FakeDaemon::Serve(Connection& connection) {
  std::vector<uint8_t> buffer(ROCEGW_MESSAGE_MAX + 1);
  iovec part = {buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const std::lock_guard lock(mutex_);
  const ssize_t got = recvmsg(connection.socket, &header, MSG_CMSG_CLOEXEC);
  if (got <= 0) {
    close(connection.socket);
    connection.socket = -1;  // poll ignores it
    ++hangups_;
    changed_.notify_all();
    return;
  }
  RecordedRequest request;
  request.bytes.assign(buffer.begin(), buffer.begin() + got);
  const auto head = request.As<rocegw_request>();
  request.type = head.type;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr) {
    request.had_descriptor = true;
    int fd;
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    close(fd);
  }
  requests_.push_back(request);
  int fd = -1;
  std::vector<uint8_t> reply;
  if (const auto failure = failures_.find(request.type); failure != failures_.end()) {
    rocegw_reply refused{};
    refused.error = failure->second;
    reply = Bytes(refused);
  } else if (const auto answer = answers_.find(request.type); answer != answers_.end()) {
    reply = answer->second(request);
  } else {
    reply = Respond(connection, request, &fd);
  }
  auto* answer_head = reinterpret_cast<rocegw_reply*>(reply.data());
  answer_head->type = request.type;
  answer_head->length = static_cast<uint32_t>(reply.size());
  answer_head->request_id = head.request_id;
  if (head.request_id != 0 && hold_ != 0) {
    held_.push_back({connection.socket, reply});
    if (held_.size() == hold_) {
      for (const HeldAnswer& held : held_) SendMessage(held.socket, held.bytes, -1);
      held_.clear();
      hold_ = 0;
    }
  } else if (head.request_id != 0) {
    SendMessage(connection.socket, reply, fd);
  }
  if (fd >= 0) close(fd);
  changed_.notify_all();
}

void FakeDaemon::AnnounceMemory(Connection& connection) {
  if (connection.announced) return;
  connection.announced = true;
  for (uint32_t i = 0; i < 2; ++i) {
    FakeChunk& chunk = connection.chunks[i];
    chunk.fd = memfd_create("rocegw-fake", MFD_CLOEXEC);
    chunk.size = kChunkSize;
    chunk.read_only = i == 1;
    if (ftruncate(chunk.fd, static_cast<off_t>(chunk.size)) != 0) testing::Die("ftruncate");
    chunk.base = static_cast<uint8_t*>(
        mmap(nullptr, chunk.size, PROT_READ | PROT_WRITE, MAP_SHARED, chunk.fd, 0));
    rocegw_chunk_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_CHUNK;
    announcement.header.length = sizeof announcement;
    announcement.chunk = i;
    announcement.read_only = chunk.read_only ? 1 : 0;
    announcement.size = chunk.size;
    SendMessage(connection.socket, Bytes(announcement), chunk.fd);
  }
  for (uint32_t w = 0; w < options_.workers; ++w) {
    rocegw_worker_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_WORKER;
    announcement.header.length = sizeof announcement;
    announcement.worker = w;
    void* line = nullptr;
    announcement.line = Allocate(connection, true, sizeof(rocegw_worker_line), &line);
    connection.lines.push_back(static_cast<rocegw_worker_line*>(line));
    connection.wake_fds.push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    SendMessage(connection.socket, Bytes(announcement), connection.wake_fds.back());
  }
}

rocegw_location FakeDaemon::Allocate(Connection& connection, bool read_only, uint64_t bytes,
                                     void** place) {
  FakeChunk& chunk = connection.chunks[read_only ? 1 : 0];
  const uint64_t offset = chunk.used;
  chunk.used += (bytes + 63) / 64 * 64;
  if (chunk.used > chunk.size) testing::Die("fake chunk is full");
  *place = chunk.base + offset;
  return {read_only ? 1u : 0u, static_cast<uint32_t>(bytes), offset};
}

std::vector<uint8_t> FakeDaemon::MakeCq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_create_cq>();
  FakeCq cq;
  cq.handle = next_handle_++;
  cq.cookie = asked.cookie;
  cq.channel = asked.channel;
  cq.entries = std::bit_ceil(asked.entries);
  cq.produced.resize(options_.workers);
  rocegw_cq_reply reply{};
  reply.handle = cq.handle;
  reply.entries = cq.entries;
  reply.worker_count = options_.workers;
  void* place = nullptr;
  reply.control =
      Allocate(connection, false, sizeof(rocegw_cq_control) + 64 * options_.workers, &place);
  cq.control = static_cast<rocegw_cq_control*>(place);
  reply.rings = Allocate(connection, true,
                         uint64_t{options_.workers} * cq.entries * sizeof(rocegw_cqe), &place);
  cq.rings = static_cast<rocegw_cqe*>(place);
  cq.reply = reply;
  cqs_[cq.handle] = cq;
  return Bytes(reply);
}

// Everything in the old rings that fits is moved.
std::vector<uint8_t> FakeDaemon::ResizeCq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_resize_cq>();
  FakeCq& cq = cqs_[asked.cq];
  const FakeCq old = cq;
  cq.entries = cq.reply.entries = std::bit_ceil(asked.entries);
  void* place = nullptr;
  cq.reply.rings = Allocate(connection, true,
                            uint64_t{options_.workers} * cq.entries * sizeof(rocegw_cqe), &place);
  cq.rings = static_cast<rocegw_cqe*>(place);
  for (uint32_t w = 0; w < options_.workers; ++w)
    for (uint32_t back = 1; back <= std::min({cq.entries, old.entries, cq.produced[w]}); ++back) {
      const uint32_t index = cq.produced[w] - back;
      cq.rings[w * cq.entries + (index & (cq.entries - 1))] =
          old.rings[w * old.entries + (index & (old.entries - 1))];
    }
  return Bytes(cq.reply);
}

std::vector<uint8_t> FakeDaemon::ResizeSrq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_modify_srq>();
  FakeSrq& srq = srqs_[asked.srq];
  const FakeSrq old = srq;
  if (asked.max_wr <= srq.reply.entries) return Bytes(srq.reply);
  srq.reply.entries = asked.max_wr;
  void* place = nullptr;
  srq.reply.order = Allocate(connection, false, uint64_t{asked.max_wr} * sizeof(uint32_t), &place);
  srq.order = static_cast<uint32_t*>(place);
  const uint32_t stride = rocegw_rq_stride(srq.reply.max_sge);
  srq.reply.slots = Allocate(connection, false, uint64_t{asked.max_wr} * stride, &place);
  srq.slots = static_cast<uint8_t*>(place);
  memcpy(srq.slots, old.slots, size_t{old.reply.entries} * stride);
  for (uint32_t back = 1; back <= old.reply.entries; ++back) {
    const uint32_t index = srq.control->producer - back;
    srq.order[index & (asked.max_wr - 1)] = old.order[index & (old.reply.entries - 1)];
  }
  return Bytes(srq.reply);
}

std::vector<uint8_t> FakeDaemon::MakeSrq(Connection& connection, const RecordedRequest& request) {
  FakeSrq srq;
  srq.request = request.As<rocegw_create_srq>();
  srq.handle = next_handle_++;
  srq.cookie = srq.request.cookie;
  srq.limit = srq.request.limit;
  rocegw_srq_reply& reply = srq.reply;
  reply.handle = srq.handle;
  reply.entries = std::bit_ceil(std::max(srq.request.max_wr, 1u));
  reply.max_sge = std::max(srq.request.max_sge, 1u);
  reply.payload_stride = options_.receive_payload ? options_.payload_stride : 0;
  reply.number = srq.request.xrcd != 0 ? kFakeSrqNumber : 0;
  void* place = nullptr;
  reply.control = Allocate(connection, false, sizeof(rocegw_srq_control), &place);
  srq.control = static_cast<rocegw_srq_control*>(place);
  reply.order = Allocate(connection, false, uint64_t{reply.entries} * sizeof(uint32_t), &place);
  srq.order = static_cast<uint32_t*>(place);
  reply.slots = Allocate(connection, false,
                         uint64_t{reply.entries} * rocegw_rq_stride(reply.max_sge), &place);
  srq.slots = static_cast<uint8_t*>(place);
  if (options_.receive_payload) {
    reply.payload =
        Allocate(connection, true, uint64_t{reply.entries} * reply.payload_stride, &place);
    srq.payload = static_cast<uint8_t*>(place);
  }
  srqs_[srq.handle] = srq;
  return Bytes(reply);
}

std::vector<uint8_t> FakeDaemon::MakeQp(Connection& connection, const RecordedRequest& request) {
  FakeQp qp;
  qp.request = request.As<rocegw_create_qp>();
  qp.handle = next_handle_++;
  qp.cookie = qp.request.cookie;
  rocegw_qp_reply& reply = qp.reply;
  reply.handle = qp.handle;
  reply.qpn = next_qpn_++;
  reply.sq_entries = std::bit_ceil(std::max(qp.request.max_send_wr, 1u));
  const bool own_receives = qp.request.srq == 0;
  reply.rq_entries = own_receives ? std::bit_ceil(std::max(qp.request.max_recv_wr, 1u)) : 0;
  reply.max_send_sge = std::max(qp.request.max_send_sge, 1u);
  reply.max_recv_sge = std::max(qp.request.max_recv_sge, 1u);
  reply.max_inline = qp.request.max_inline;
  reply.worker = reply.qpn % options_.workers;
  reply.sq_payload_stride = options_.payload_stride;
  reply.rq_payload_stride = options_.receive_payload ? options_.payload_stride : 0;
  reply.doorbell_bit = reply.qpn % ROCEGW_DOORBELL_BITS;
  void* place = nullptr;
  reply.control = Allocate(connection, false, sizeof(rocegw_qp_control), &place);
  qp.control = static_cast<rocegw_qp_control*>(place);
  reply.status = Allocate(connection, true, sizeof(rocegw_qp_status), &place);
  qp.status = static_cast<rocegw_qp_status*>(place);
  reply.sq = Allocate(connection, false,
                      uint64_t{reply.sq_entries} * rocegw_sq_stride(reply.max_send_sge), &place);
  qp.sq = static_cast<uint8_t*>(place);
  reply.sq_payload =
      Allocate(connection, false, uint64_t{reply.sq_entries} * reply.sq_payload_stride, &place);
  qp.sq_payload = static_cast<uint8_t*>(place);
  reply.rq = Allocate(connection, false,
                      uint64_t{reply.rq_entries} * rocegw_rq_stride(reply.max_recv_sge), &place);
  qp.rq = static_cast<uint8_t*>(place);
  if (options_.receive_payload && own_receives) {
    reply.rq_payload =
        Allocate(connection, true, uint64_t{reply.rq_entries} * reply.rq_payload_stride, &place);
    qp.rq_payload = static_cast<uint8_t*>(place);
  }
  reply.doorbell = Allocate(connection, false, sizeof(rocegw_doorbell_page), &place);
  qp.doorbell = static_cast<rocegw_doorbell_page*>(place);
  last_qpn_ = reply.qpn;
  qps_[reply.qpn] = qp;
  return Bytes(reply);
}

std::vector<uint8_t> FakeDaemon::MakeRegion(const RecordedRequest& request, int* fd) {
  const auto asked = request.As<rocegw_create_region>();
  FakeRegion region;
  region.handle = next_handle_++;
  region.address = asked.address;
  region.length = asked.length;
  region.fd = memfd_create("rocegw-fake-region", MFD_CLOEXEC);
  if (ftruncate(region.fd, static_cast<off_t>(region.length + (uint64_t{1} << 30))) != 0) {
    testing::Die("ftruncate");
  }
  region.base = static_cast<uint8_t*>(
      mmap(nullptr, region.length, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0));
  if (region.base == MAP_FAILED) testing::Die("mmap");
  regions_[region.handle] = region;
  *fd = dup(region.fd);
  rocegw_object_reply reply{};
  reply.handle = region.handle;
  return Bytes(reply);
}

void FakeDaemon::DestroyRegion(uint32_t handle) {
  const auto region = regions_.find(handle);
  if (region == regions_.end()) return;
  munmap(region->second.base, region->second.length);
  close(region->second.fd);
  regions_.erase(region);
}

// Creates contexts and channels: a handle, and the client's end of an event socket.
std::vector<uint8_t> FakeDaemon::MakeObject(Connection& connection, const RecordedRequest& request,
                                            int* fd) {
  if (request.type == ROCEGW_MSG_OPEN_CONTEXT) AnnounceMemory(connection);
  rocegw_object_reply reply{};
  reply.handle = next_handle_++;
  if (request.type != ROCEGW_MSG_ALLOC_PD) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      testing::Die("socketpair");
    events_[reply.handle] = pair[0];
    *fd = pair[1];
    if (request.type == ROCEGW_MSG_OPEN_CONTEXT) contexts_.push_back(reply.handle);
  }
  return Bytes(reply);
}

std::vector<uint8_t> FakeDaemon::Respond(Connection& connection, const RecordedRequest& request,
                                         int* fd) {
  const uint32_t object = request.As<rocegw_object_request>().handle;
  switch (request.type) {
    case ROCEGW_MSG_HELLO: {
      rocegw_hello_reply reply{};
      reply.major = options_.major;
      reply.minor = options_.minor;
      reply.session = static_cast<uint32_t>(accepted_);
      reply.worker_count = options_.workers;
      reply.device_count = options_.devices;
      reply.flags = options_.welcome_flags;
      if (options_.sysfs) {
        snprintf(reply.sysfs_root, sizeof reply.sysfs_root, "%s/sys", directory_.c_str());
      }
      if ((reply.flags & ROCEGW_WELCOME_REMAP) != 0) {
        *fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_REGION:
      return MakeRegion(request, fd);
    case ROCEGW_MSG_DESTROY_REGION:
      DestroyRegion(object);
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_QUERY_DEVICE:
      return Bytes(DescribeDevice(request.As<rocegw_query_device>().device, options_));
    case ROCEGW_MSG_QUERY_GIDS: {
      const auto asked = request.As<rocegw_query_gids>();
      rocegw_gids_reply reply{};
      // Indices 0, 2, 4 and so on: tables have holes.
      for (uint32_t i = 0; i < options_.gids; ++i) {
        const uint32_t index = 2 * i;
        if (index < asked.first) continue;
        rocegw_gid_entry& entry = reply.entry[reply.count++];
        entry.index = index;
        entry.interface_index = 7 + asked.device;
        entry.gid[10] = entry.gid[11] = 0xff;
        entry.gid[12] = 10;
        entry.gid[15] = static_cast<uint8_t>(1 + i);
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_OPEN_CONTEXT:
    case ROCEGW_MSG_CREATE_CHANNEL:
    case ROCEGW_MSG_CM_CREATE_CHANNEL:
    case ROCEGW_MSG_ALLOC_PD:
      return MakeObject(connection, request, fd);
    case ROCEGW_MSG_REG_MR: {
      rocegw_mr_reply reply{};
      reply.handle = next_handle_++;
      reply.lkey = next_key_;
      reply.rkey = next_key_;
      key_of_[reply.handle] = next_key_;
      next_key_ += 0x100;
      return Bytes(reply);
    }
    case ROCEGW_MSG_REREG_MR: {
      rocegw_mr_reply reply{};
      reply.handle = request.As<rocegw_rereg_mr>().mr;
      reply.lkey = reply.rkey = key_of_[reply.handle];
      return Bytes(reply);
    }
    case ROCEGW_MSG_TAKE_AHS: {
      rocegw_ahs_reply reply{};
      reply.count = 1;
      return Bytes(reply);
    }
    case ROCEGW_MSG_GIVE_AHS:
      return Bytes(rocegw_reply{});
    case ROCEGW_MSG_CREATE_CQ:
      return MakeCq(connection, request);
    case ROCEGW_MSG_RESIZE_CQ:
      return ResizeCq(connection, request);
    case ROCEGW_MSG_OPEN_XRCD: {
      rocegw_object_reply reply{};
      reply.handle = next_handle_++;
      return Bytes(reply);
    }
    case ROCEGW_MSG_CLOSE_XRCD:
    case ROCEGW_MSG_MODERATE_CQ:
    case ROCEGW_MSG_ATTACH_MULTICAST:
    case ROCEGW_MSG_DETACH_MULTICAST:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CREATE_QP:
      return MakeQp(connection, request);
    case ROCEGW_MSG_MODIFY_QP: {
      const auto asked = request.As<rocegw_modify_qp>();
      for (auto& [qpn, qp] : qps_) {
        if (qp.handle != asked.qp) continue;
        qp.attr = asked.attr;
        if ((asked.attr_mask & 1) == 0) continue;
        qp.status->state = asked.attr.qp_state;
        if (asked.attr.qp_state == 0) {  // reset: posted requests are dropped
          __atomic_store_n(&qp.status->sq_released, qp.control->sq_producer, __ATOMIC_RELEASE);
          __atomic_store_n(&qp.status->rq_released, qp.control->rq_producer, __ATOMIC_RELEASE);
        }
      }
      return Bytes(rocegw_object_reply{});
    }
    case ROCEGW_MSG_QUERY_QP: {
      rocegw_query_qp_reply reply{};
      for (auto& [qpn, qp] : qps_) {
        if (qp.handle == object) reply.attr = qp.attr;
      }
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_SRQ:
      return MakeSrq(connection, request);
    case ROCEGW_MSG_MODIFY_SRQ: {
      const auto asked = request.As<rocegw_modify_srq>();
      if ((asked.mask & ROCEGW_SRQ_LIMIT) != 0) srqs_[asked.srq].limit = asked.limit;
      if ((asked.mask & ROCEGW_SRQ_MAX_WR) != 0) return ResizeSrq(connection, request);
      return Bytes(rocegw_object_reply{});
    }
    case ROCEGW_MSG_QUERY_SRQ: {
      const FakeSrq& srq = srqs_[object];
      rocegw_query_srq_reply reply{};
      reply.max_wr = srq.reply.entries;
      reply.max_sge = srq.reply.max_sge;
      reply.limit = srq.limit;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_SRQ:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CREATE_PEER: {
      rocegw_object_reply reply{};
      reply.handle = ++last_peer_;
      return Bytes(reply);
    }
    case ROCEGW_MSG_CREATE_GROUP: {
      rocegw_group_reply reply{};
      reply.handle = ++last_peer_;
      reply.number = 0x777;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_GROUP:
    case ROCEGW_MSG_DESTROY_PEER:
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_QUERY_ECE: {
      rocegw_ece_reply reply{};
      reply.vendor_id = 0x02BADD;
      reply.options = 7;
      return Bytes(reply);
    }
    case ROCEGW_MSG_SET_ECE: {
      const auto asked = request.As<rocegw_set_ece>();
      rocegw_ece_reply reply{};
      reply.vendor_id = asked.vendor_id;
      reply.options = asked.options & 7;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DESTROY_CHANNEL:
    case ROCEGW_MSG_CLOSE_CONTEXT:
    case ROCEGW_MSG_CM_DESTROY_CHANNEL:
      if (const auto event = events_.find(object); event != events_.end()) {
        close(event->second);
        events_.erase(event);
      }
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_DESTROY_CQ:
      cqs_.erase(object);
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_DESTROY_QP:
      std::erase_if(qps_, [&](const auto& entry) { return entry.second.handle == object; });
      return Bytes(rocegw_object_reply{});
    case ROCEGW_MSG_CM_CREATE_ID: {
      rocegw_object_reply reply{};
      reply.handle = next_handle_++;
      return Bytes(reply);
    }
    case ROCEGW_MSG_DEALLOC_PD:
    case ROCEGW_MSG_DEREG_MR:
      return Bytes(rocegw_object_reply{});
    default: {
      rocegw_reply reply{};
      reply.error = request.type >= ROCEGW_MSG_CM_CREATE_CHANNEL && request.type < ROCEGW_MSG_CHUNK
                        ? 0
                        : ENOSYS;
      return Bytes(reply);
    }
  }
}

void FakeDaemon::Fail(uint32_t type, int error) {
  const std::lock_guard lock(mutex_);
  if (error == 0) {
    failures_.erase(type);
  } else {
    failures_[type] = error;
  }
}

void FakeDaemon::OnRequest(uint32_t type, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[type] = std::move(answer);
}

std::unique_lock<std::recursive_mutex> FakeDaemon::LockWhenAllIsRead() const {
  std::unique_lock lock(mutex_);
  if (std::this_thread::get_id() == thread_.get_id()) return lock;
  changed_.wait(lock, [&] {
    return std::none_of(connections_.begin(), connections_.end(), [](const auto& connection) {
      int unread = 0;
      return connection->socket >= 0 && ioctl(connection->socket, FIONREAD, &unread) == 0 &&
             unread != 0;
    });
  });
  return lock;
}

std::vector<RecordedRequest> FakeDaemon::Requests(uint32_t type) const {
  const auto lock = LockWhenAllIsRead();
  std::vector<RecordedRequest> found;
  for (const RecordedRequest& request : requests_) {
    if (request.type == type) found.push_back(request);
  }
  return found;
}

std::vector<uint32_t> FakeDaemon::History() const {
  const auto lock = LockWhenAllIsRead();
  std::vector<uint32_t> types;
  types.reserve(requests_.size());
  for (const RecordedRequest& request : requests_) types.push_back(request.type);
  return types;
}

RecordedRequest FakeDaemon::Last(uint32_t type) const {
  const auto found = Requests(type);
  return found.empty() ? RecordedRequest{} : found.back();
}

size_t FakeDaemon::connections() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

size_t FakeDaemon::hangups() const {
  const std::lock_guard lock(mutex_);
  return hangups_;
}

bool FakeDaemon::WaitForHangups(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return hangups_ >= count; });
}

FakeQp FakeDaemon::Qp(uint32_t qpn) const {
  const std::lock_guard lock(mutex_);
  return qps_.at(qpn);
}

FakeQp FakeDaemon::LastQp() const {
  const std::lock_guard lock(mutex_);
  return qps_.at(last_qpn_);
}

std::vector<FakeRegion> FakeDaemon::Regions() const {
  const std::lock_guard lock(mutex_);
  std::vector<FakeRegion> all;
  for (const auto& [handle, region] : regions_) all.push_back(region);
  return all;
}

FakeSrq FakeDaemon::Srq(uint32_t handle) const {
  const std::lock_guard lock(mutex_);
  return srqs_.at(handle);
}

FakeCq FakeDaemon::Cq(uint32_t handle) const {
  const std::lock_guard lock(mutex_);
  return cqs_.at(handle);
}

void FakeDaemon::SetNeedWakeup(uint32_t worker, bool need) {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    if (worker < connection->lines.size()) {
      __atomic_store_n(&connection->lines[worker]->need_wakeup, need ? 1u : 0u, __ATOMIC_SEQ_CST);
    }
  }
}

bool FakeDaemon::WasWoken(uint32_t worker) {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    uint64_t count = 0;
    if (worker < connection->wake_fds.size() &&
        read(connection->wake_fds[worker], &count, sizeof count) == sizeof count) {
      return true;
    }
  }
  return false;
}

void FakeDaemon::Complete(uint32_t cq_handle, uint32_t worker, const FakeQp& qp, rocegw_cqe cqe) {
  const std::lock_guard lock(mutex_);
  FakeCq& cq = cqs_.at(cq_handle);
  rocegw_cqe* slot =
      cq.rings + size_t{worker} * cq.entries + (cq.produced[worker] & (cq.entries - 1));
  cqe.qpn = qp.reply.qpn;
  cqe.qp_handle = qp.handle;
  memcpy(slot, &cqe, offsetof(rocegw_cqe, sequence));
  __atomic_store_n(&slot->sequence, ++cq.produced[worker], __ATOMIC_RELEASE);
}

void FakeDaemon::SendEvent(uint32_t channel, const void* record, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto event = events_.find(channel);
  if (event == events_.end()) testing::Die("no such event channel");
  if (send(event->second, record, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    testing::Die("send event");
  }
}

void FakeDaemon::SendCompletionEvent(uint32_t handle) {
  const FakeCq cq = Cq(handle);
  rocegw_completion_event event{};
  event.cookie = cq.cookie;
  event.cq = handle;
  SendEvent(cq.channel, &event, sizeof event);
}

void FakeDaemon::SendAsyncEvent(const rocegw_async_event& event) {
  uint32_t context;
  {
    const std::lock_guard lock(mutex_);
    context = contexts_.back();
  }
  SendEvent(context, &event, sizeof event);
}

void FakeDaemon::SendCmEvent(uint32_t channel, const rocegw_cm_event& event) {
  SendEvent(channel, &event, sizeof event);
}

}  // namespace rocegw::testing
