// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/donor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <tuple>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr int kTickMilliseconds = 500;
constexpr int kBacklog = 64;
// Messages of all sessions that may wait for this thread at once.
constexpr int kCompletionEntries = 16384;

LeaseLedger::Seconds Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

// Memory of one lease. Mapped anew for each lease, and so zero; its key ends before the memory
// goes.
class Donor::LeasedMemory {
 public:
  LeasedMemory(ibv_pd* pd, uint64_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;
    data_ = mapped;
    mr_ = ibv_reg_mr(pd, data_, bytes,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  }
  ~LeasedMemory() {
    if (mr_ != nullptr) ibv_dereg_mr(mr_);
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  LeasedMemory(const LeasedMemory&) = delete;
  LeasedMemory& operator=(const LeasedMemory&) = delete;

  bool usable() const { return mr_ != nullptr; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(data_); }
  uint32_t key() const { return mr_->rkey; }

 private:
  const uint64_t bytes_;
  void* data_ = nullptr;
  ibv_mr* mr_ = nullptr;
};

Donor::Donor(LeaseLedger::Limits limits)
    : ledger_(std::move(limits)), stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Donor::~Donor() {
  while (!sessions_.empty()) End(sessions_.begin()->first);
  for (const auto& [context, device] : devices_) {
    if (device.cq != nullptr) ibv_destroy_cq(device.cq);
    if (device.channel != nullptr) ibv_destroy_comp_channel(device.channel);
    if (device.pd != nullptr) ibv_dealloc_pd(device.pd);
  }
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

Status Donor::Listen(const std::string& host, const std::string& port) {
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr)
    return ErrnoStatus("no RDMA connection manager (started under rocegw-run?)");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) {
    return ErrnoStatus("no RDMA identifier");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? "0.0.0.0" : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return {EINVAL, host + ":" + port + ": " + gai_strerror(error)};
  const bool bound = rdma_bind_addr(listener_, found->ai_addr) == 0;
  freeaddrinfo(found);
  if (!bound) return ErrnoStatus("cannot bind to " + host + ":" + port);
  if (rdma_listen(listener_, kBacklog) != 0)
    return ErrnoStatus("cannot listen at " + host + ":" + port);
  return OkStatus();
}

std::string Donor::address() const {
  const sockaddr* const bound = rdma_get_local_addr(listener_);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bound->sa_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(bound)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&address)) return {};
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  } else {
    const in_addr address = reinterpret_cast<const sockaddr_in*>(bound)->sin_addr;
    if (address.s_addr == INADDR_ANY) return {};
    inet_ntop(AF_INET, &address, text.data(), text.size());
  }
  return text.data();
}

void Donor::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
}

Status Donor::Run() {
  for (;;) {
    std::vector<pollfd> ready{{stop_fd_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}};
    for (const auto& [context, device] : devices_) ready.push_back({device.channel->fd, POLLIN, 0});
    if (poll(ready.data(), ready.size(), kTickMilliseconds) < 0 && errno != EINTR) {
      return ErrnoStatus("poll");
    }
    if (ready[0].revents != 0) return OkStatus();
    OnEvent();
    for (auto& [context, device] : devices_) OnCompletions(device);
    std::vector<uint64_t> expired;
    {
      const std::lock_guard lock(mutex_);
      expired = ledger_.Expired(Now());
      counts_.sessions_expired += expired.size();
    }
    for (const uint64_t session : expired) End(session);
  }
}

StatusOr<Donor::Device*> Donor::DeviceOf(ibv_context* context) {
  Device& device = devices_[context];
  if (device.cq != nullptr) return &device;
  device.pd = ibv_alloc_pd(context);
  device.channel = ibv_create_comp_channel(context);
  if (device.pd != nullptr && device.channel != nullptr) {
    fcntl(device.channel->fd, F_SETFL, fcntl(device.channel->fd, F_GETFL) | O_NONBLOCK);
    device.cq = ibv_create_cq(context, kCompletionEntries, nullptr, device.channel, 0);
  }
  if (device.cq != nullptr) {
    ibv_req_notify_cq(device.cq, 0);
    return &device;
  }
  Status status = ErrnoStatus("no completion queue");
  if (device.channel != nullptr) ibv_destroy_comp_channel(device.channel);
  if (device.pd != nullptr) ibv_dealloc_pd(device.pd);
  devices_.erase(context);
  return status;
}

void Donor::OnEvent() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    rdma_cm_id* id = event->id;
    const rdma_cm_event_type type = event->event;
    std::array<uint8_t, sizeof(HelloBytes)> hello{};
    const size_t bytes = std::min<size_t>(event->param.conn.private_data_len, hello.size());
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data != nullptr) {
      std::memcpy(hello.data(), event->param.conn.private_data, bytes);
    }
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      OnRequest(id, hello.data(), bytes);
    } else if (type != RDMA_CM_EVENT_ESTABLISHED && id != listener_) {
      End(reinterpret_cast<uintptr_t>(id->context));
    }
  }
}

void Donor::Refuse(rdma_cm_id* id, int error) {
  const RefusalBytes said = Encode(Refusal{error});
  rdma_reject(id, said.data(), said.size());
  const std::lock_guard lock(mutex_);
  counts_.sessions_refused++;
}

void Donor::OnRequest(rdma_cm_id* id, const void* hello_bytes, size_t size) {
  auto connection = std::make_unique<Connection>(id);  // destroys the identifier
  const auto hello = DecodeHello(hello_bytes, size);
  if (!hello || hello->tenant.empty()) {
    Refuse(id, EPROTO);
    return;
  }
  const uint64_t number = ++last_session_;
  Welcome welcome;
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    error = ledger_.AddSession(number, hello->tenant, Now());
    welcome.lease_seconds = static_cast<uint32_t>(ledger_.limits().lease_seconds);
    welcome.free_bytes = ledger_.FreeForSession(number);
    counts_.sessions_accepted += error == 0 ? 1 : 0;
  }
  if (error != 0) {
    Refuse(id, error);
    return;
  }
  Session& session = sessions_[number];
  session.number = number;
  session.context = id->verbs;
  session.connection = std::move(connection);
  id->context = reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
  const auto device = DeviceOf(id->verbs);
  const bool accepted =
      device.ok() &&
      session.connection->MakeQueuePair(device.value()->pd, device.value()->cq, {}).ok() &&
      session.connection->Accept(welcome).ok();
  if (!accepted) {
    Refuse(id, ENOMEM);
    End(number);
  }
}

void Donor::OnCompletions(Device& device) {
  ibv_cq* cq = nullptr;
  void* argument = nullptr;
  while (ibv_get_cq_event(device.channel, &cq, &argument) == 0) ibv_ack_cq_events(cq, 1);
  ibv_req_notify_cq(device.cq, 0);
  std::array<ibv_wc, 32> completions;
  int count = 0;
  while ((count = ibv_poll_cq(device.cq, completions.size(), completions.data())) > 0) {
    // A session that ends while its messages are handled takes their buffers with it.
    std::vector<uint64_t> ended;
    for (int at = 0; at < count; at++) {
      const ibv_wc& completion = completions[static_cast<size_t>(at)];
      auto* what = reinterpret_cast<Completable*>(completion.wr_id);
      Connection& connection = *what->connection;
      const auto number = reinterpret_cast<uintptr_t>(connection.id()->context);
      if (completion.status != IBV_WC_SUCCESS) {
        ended.push_back(number);
        continue;
      }
      if (what->kind == Completable::Kind::kSentMessage) {
        connection.OnSent(*what);
        continue;
      }
      const auto message = connection.Received(*what, completion.byte_len);
      if (message) {
        OnMessage(sessions_.at(number), *message);
      } else {
        ended.push_back(number);
      }
      connection.Rearm(*what);
    }
    for (const uint64_t number : ended) End(number);
  }
}

void Donor::OnMessage(Session& session, const Message& message) {
  Message reply;
  {
    const std::lock_guard lock(mutex_);
    ledger_.Renew(session.number, Now());
    reply.free_bytes = ledger_.FreeForSession(session.number);
    reply.draining = ledger_.draining();
  }
  switch (message.type) {
    case MessageType::kLease:
      Grant(session, message);
      break;
    case MessageType::kReturn: {
      session.leases.erase(message.lease);
      const std::lock_guard lock(mutex_);
      ledger_.Return(session.number, message.lease);
      break;
    }
    case MessageType::kRenew:
      reply.type = MessageType::kRenewed;
      session.connection->Send(reply);
      break;
    case MessageType::kLeased:
    case MessageType::kRenewed:
      break;  // a donor's own words
  }
}

void Donor::Grant(Session& session, const Message& asked) {
  Message reply;
  reply.type = MessageType::kLeased;
  reply.id = asked.id;
  {
    const std::lock_guard lock(mutex_);
    std::tie(reply.error, reply.lease) = ledger_.Grant(session.number, asked.bytes);
  }
  if (reply.error == 0) {
    auto memory = std::make_unique<LeasedMemory>(devices_.at(session.context).pd, asked.bytes);
    if (memory->usable()) {
      reply.address = memory->address();
      reply.key = memory->key();
      session.leases[reply.lease] = std::move(memory);
    } else {
      reply.error = ENOMEM;
      const std::lock_guard lock(mutex_);
      ledger_.Return(session.number, reply.lease);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    reply.free_bytes = ledger_.FreeForSession(session.number);
    (reply.error == 0 ? counts_.leases_granted : counts_.leases_refused)++;
  }
  session.connection->Send(reply);
}

void Donor::End(uint64_t number) {
  const auto session = sessions_.find(number);
  if (session == sessions_.end()) return;
  // No transfer reaches the memory any more once the queue pair and the keys are gone.
  session->second.connection->Abort();
  session->second.connection->DestroyQueuePair();
  sessions_.erase(session);
  const std::lock_guard lock(mutex_);
  ledger_.RemoveSession(number);
}

void Donor::Follow(LeaseLedger::Orders orders) {
  const std::lock_guard lock(mutex_);
  ledger_.Follow(std::move(orders));
}

DonorCounts Donor::counts() const {
  const std::lock_guard lock(mutex_);
  DonorCounts counts = counts_;
  counts.donated_bytes = ledger_.limits().donated_bytes;
  counts.leased_bytes = ledger_.leased_bytes();
  counts.leases = ledger_.lease_count();
  counts.sessions = ledger_.session_count();
  counts.leased_by_tenant = ledger_.by_tenant();
  counts.draining = ledger_.draining();
  return counts;
}

}  // namespace rocegw::far
