// SPDX-License-Identifier: Apache-2.0
#include "tests/support/session/session_host.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rocegw::testing {

session::Device SessionHost::MakeDevice() {
  session::Device device;
  device.name = "rocegw0";
  device.interface = "eth0";
  device.interface_index = 2;
  device.node_guid = 0x0123456789ABCDEF;
  device.active_mtu = 3;
  device.gids = {wire::Gid::FromV4(0xC0000201), wire::Gid{}, wire::Gid{}};
  device.gids[2].bytes[0] = 0xFD;
  device.gids[2].bytes[15] = 1;
  return device;
}

SessionHost::SessionHost(size_t worker_count, session::Options options, size_t ring_capacity,
                         std::vector<session::Device> devices, session::SourceLookup lookup)
    : control_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  (void)loop.Open();
  std::vector<worker::WorkerLink*> links;
  for (size_t i = 0; i < worker_count; ++i) {
    workers.push_back(std::make_unique<FakeWorker>(static_cast<WorkerIndex>(i), control_wake.get(),
                                                   ring_capacity));
    links.push_back(&workers.back()->link);
  }
  server = std::make_unique<session::SessionServer>(
      loop, links, port::SteeringTable(worker_count), std::move(devices), std::move(options),
      [this](session::Severity, const std::string& line) { log.push_back(line); },
      std::move(lookup));
}

SessionHost::~SessionHost() {
  bool gone = false;
  server->Shutdown([&] { gone = true; });
  while (!gone) Settle();
}

bool SessionHost::RunWorkers() {
  bool any = false;
  for (const auto& worker : workers) any = worker->Pump() || any;
  return any;
}

void SessionHost::Settle() {
  // A few quiet rounds: descriptors that a round made ready show in the next.
  for (int quiet = 0; quiet < 3;) {
    loop.RunOnce({});
    const bool blocking = session::ClientCallQueue::HeldByAll() > blocked_calls ||
                          server->blocked_count() > blocked_calls;
    quiet =
        RunWorkers() || server->services().workers.unanswered() != 0 || blocking ? 0 : quiet + 1;
    if (blocking) ::sched_yield();
  }
}

size_t SessionHost::LinkedObjects() const {
  size_t count = 0;
  for (const auto& worker : workers) {
    for (const auto& [id, session] : worker->sessions) {
      count += 1 + session.cqs.size() + session.srqs.size() + session.qps.size() +
               session.mrs.size() + session.windows.size();
    }
  }
  return count;
}

std::vector<std::string> SessionHost::BrokenRules() const {
  std::vector<std::string> all;
  for (const auto& worker : workers)
    all.insert(all.end(), worker->broken_rules.begin(), worker->broken_rules.end());
  return all;
}

bool SessionHost::Logged(const std::string& part) const {
  return std::any_of(log.begin(), log.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

bool SessionHost::Told(const std::string& part) const {
  const std::vector<session::EventRow> rows = server->services().events.Rows();
  return std::any_of(rows.begin(), rows.end(), [&](const session::EventRow& row) {
    return row.text.find(part) != std::string::npos;
  });
}

TestClient::TestClient(SessionHost& host, const std::string& pool)
    : settle_([&host] { host.Settle(); }) {
  int ends[2] = {-1, -1};
  (void)!::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
  socket_.Reset(ends[0]);
  host.server->Attach(UniqueFd(ends[1]), pool);
}

TestClient::~TestClient() {
  for (auto& [number, chunk] : chunks) {
    if (chunk.base != nullptr) ::munmap(chunk.base, chunk.size);
  }
}

bool TestClient::SendRaw(std::span<const uint8_t> bytes, std::span<const int> fds) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * std::max<size_t>(fds.size(), 1)));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void TestClient::Announced(ClientMessage message) {
  if (message.header().type == ROCEGW_MSG_CHUNK) {
    rocegw_chunk_announcement chunk{};
    std::memcpy(&chunk, message.bytes.data(), sizeof chunk);
    Chunk& known = chunks[chunk.chunk];
    known.read_only = chunk.read_only != 0;
    known.size = chunk.size;
    known.fd = std::move(message.fd);
    void* base = ::mmap(nullptr, chunk.size, PROT_READ | (known.read_only ? 0 : PROT_WRITE),
                        MAP_SHARED, known.fd.get(), 0);
    known.base = base == MAP_FAILED ? nullptr : static_cast<uint8_t*>(base);
  } else {
    rocegw_worker_announcement worker{};
    std::memcpy(&worker, message.bytes.data(), sizeof worker);
    wake_fds[worker.worker] = std::move(message.fd);
    lines[worker.worker] = worker.line;
  }
}

std::optional<ClientMessage> TestClient::Receive() {
  while (true) {
    ClientMessage message;
    message.bytes.resize(ROCEGW_MESSAGE_MAX);
    iovec part{message.bytes.data(), message.bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t length = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length <= 0) return std::nullopt;
    message.bytes.resize(static_cast<size_t>(length));
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&header)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
      message.fd.Reset(fd);
    }
    const uint32_t type = message.header().type;
    if (type == ROCEGW_MSG_RINGS_WAKE) {
      rings_wake = std::move(message.fd);
      continue;
    }
    if (type != ROCEGW_MSG_CHUNK && type != ROCEGW_MSG_WORKER) return message;
    Announced(std::move(message));
  }
}

std::optional<ClientMessage> TestClient::Answer() {
  if (!host_has_threads_) {
    do {
      settle_();
      if (auto message = Receive()) return message;
    } while (answers_take_time_ && !closed());
    return std::nullopt;
  }
  while (true) {
    pollfd readable{socket_.get(), POLLIN, 0};
    if (::poll(&readable, 1, 60000) != 1) return std::nullopt;
    if (auto message = Receive()) return message;
    if ((readable.revents & POLLHUP) != 0) return std::nullopt;
  }
}

bool TestClient::closed() {
  while (Receive()) {
  }
  char byte = 0;
  const ssize_t length = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
  return length == 0 || (length < 0 && errno != EAGAIN);
}

uint8_t* TestClient::At(const rocegw_location& location) {
  const auto it = chunks.find(location.chunk);
  if (it == chunks.end() || it->second.base == nullptr ||
      location.offset + location.length > it->second.size) {
    return nullptr;
  }
  return it->second.base + location.offset;
}

bool TestClient::Hello(int memory_fd) {
  auto hello = Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  Call<rocegw_hello_reply>(hello, memory_fd);
  return error() == 0;
}

uint32_t TestClient::OpenContext(uint32_t device) {
  auto open = Request<rocegw_open_context>(ROCEGW_MSG_OPEN_CONTEXT);
  open.device = device;
  return Call<rocegw_object_reply>(open).handle;
}

uint32_t TestClient::AllocPd(uint32_t context) {
  auto alloc = Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  alloc.context = context;
  return Call<rocegw_object_reply>(alloc).handle;
}

uint32_t TestClient::CreateChannel(uint32_t context) {
  return Object(ROCEGW_MSG_CREATE_CHANNEL, context).handle;
}

rocegw_object_reply TestClient::Object(uint32_t type, uint32_t handle) {
  auto request = Request<rocegw_object_request>(type);
  request.handle = handle;
  return Call<rocegw_object_reply>(request);
}

rocegw_mr_reply TestClient::RegMr(uint32_t pd, uint64_t address, uint64_t length, uint32_t access,
                                  uint32_t region) {
  auto reg = Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.address = reg.iova = address;
  reg.length = length;
  reg.access = access;
  reg.region = region;
  return Call<rocegw_mr_reply>(reg);
}

rocegw_cq_reply TestClient::CreateCq(uint32_t context, uint32_t entries, uint32_t channel) {
  auto create = Request<rocegw_create_cq>(ROCEGW_MSG_CREATE_CQ);
  create.context = context;
  create.entries = entries;
  create.channel = channel;
  create.cookie = 0xC0;
  return Call<rocegw_cq_reply>(create);
}

rocegw_create_qp TestClient::QpRequest(uint32_t pd, uint32_t cq, uint32_t type, uint32_t depth) {
  auto create = Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  create.pd = pd;
  create.send_cq = create.recv_cq = cq;
  create.type = type;
  create.max_send_wr = create.max_recv_wr = depth;
  create.max_send_sge = create.max_recv_sge = 1;
  create.cookie = 0x09;
  return create;
}

rocegw_qp_reply TestClient::CreateQp(uint32_t pd, uint32_t cq, uint32_t type, uint32_t depth) {
  return Call<rocegw_qp_reply>(QpRequest(pd, cq, type, depth));
}

int TestClient::Modify(uint32_t qp, uint32_t mask, const rocegw_qp_attr& attr) {
  auto modify = Request<rocegw_modify_qp>(ROCEGW_MSG_MODIFY_QP);
  modify.qp = qp;
  modify.attr_mask = mask;
  modify.attr = attr;
  Call<rocegw_object_reply>(modify);
  return error();
}

}  // namespace rocegw::testing
