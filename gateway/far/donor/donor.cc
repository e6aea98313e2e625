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
#include <optional>
#include <tuple>
#include <utility>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr int kTickMilliseconds = 500;
constexpr int kBacklog = 64;
// Messages, in both directions, of all sessions and of as many that have ended.
constexpr int kCompletionEntries = 16384;
constexpr size_t kMostEnded = 256;
// Work of one round: a lease costs a registration of up to 1 GiB, which some devices pin and zero.
// Completions that are no messages cost little, and a connection that ends has 16 of them.
constexpr int kEventsInRound = 16;
constexpr int kMessagesInRound = 64;
constexpr int kCompletionsInRound = 1024;
constexpr auto kLongestRound = std::chrono::milliseconds(50);
constexpr LeaseLedger::Seconds kLongestSilence = 30;  // Run hangs, if it is longer
constexpr auto kLongestFlush = std::chrono::seconds(2);

LeaseLedger::Seconds Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count();
}

// Address that a connection request comes from.
std::string HostOf(rdma_cm_id* id) {
  const sockaddr* const peer = rdma_get_peer_addr(id);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address =
      peer->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(peer)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(peer)->sin_addr;
  inet_ntop(peer->sa_family, address, text.data(), text.size());
  return text.data();
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
  FreeEnded(true);
  for (const auto& [context, device] : devices_) {
    if (device.cq != nullptr) ibv_destroy_cq(device.cq);
    if (device.channel != nullptr) ibv_destroy_comp_channel(device.channel);
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
  bool more = false;  // the last round has left work
  for (;;) {
    last_round_ = Now();
    std::vector<pollfd> ready{{stop_fd_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}};
    for (const auto& [context, device] : devices_) ready.push_back({device.channel->fd, POLLIN, 0});
    if (poll(ready.data(), ready.size(), more ? 0 : kTickMilliseconds) < 0 && errno != EINTR) {
      return ErrnoStatus("poll");
    }
    if (ready[0].revents != 0) return OkStatus();
    more = OnEvents();
    if (listener_gone_) return {ENODEV, "the gateway or the RDMA device of this host is gone"};
    for (auto& [context, device] : devices_) more = OnCompletions(device) || more;
    std::vector<uint64_t> expired;
    {
      const std::lock_guard lock(mutex_);
      expired = ledger_.Expired(Now());
      counts_.sessions_expired += expired.size();
    }
    for (const uint64_t session : expired) End(session);
    FreeEnded(false);
  }
}

bool Donor::IsRunning() const { return Now() - last_round_ <= kLongestSilence; }

StatusOr<Donor::Device*> Donor::DeviceOf(ibv_context* context) {
  Device& device = devices_[context];
  if (device.cq != nullptr) return &device;
  device.channel = ibv_create_comp_channel(context);
  if (device.channel != nullptr) {
    fcntl(device.channel->fd, F_SETFL, fcntl(device.channel->fd, F_GETFL) | O_NONBLOCK);
    device.cq = ibv_create_cq(context, kCompletionEntries, nullptr, device.channel, 0);
  }
  if (device.cq != nullptr) {
    ibv_req_notify_cq(device.cq, 0);
    return &device;
  }
  Status status = ErrnoStatus("no completion queue");
  if (device.channel != nullptr) ibv_destroy_comp_channel(device.channel);
  devices_.erase(context);
  return status;
}

// Returns whether further events may wait.
bool Donor::OnEvents() {
  for (int taken = 0; taken < kEventsInRound; taken++) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) return false;
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
    } else if (id == listener_) {
      listener_gone_ = listener_gone_ || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    } else if (type == RDMA_CM_EVENT_ESTABLISHED) {
      const std::lock_guard lock(mutex_);
      ledger_.Established(reinterpret_cast<uintptr_t>(id->context));
    } else {
      End(reinterpret_cast<uintptr_t>(id->context));
    }
  }
  return true;
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
  const std::string host = HostOf(id);
  const uint64_t number = ++last_session_;
  Welcome welcome;
  int error = 0;
  std::optional<uint64_t> surplus;
  {
    const std::lock_guard lock(mutex_);
    surplus = ledger_.Surplus();
    counts_.connections_ended += surplus ? 1 : 0;
  }
  if (surplus) End(*surplus);
  {
    const std::lock_guard lock(mutex_);
    error = ledger_.AddSession(number, hello->tenant, host, Now());
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
  if (!Accept(session, welcome).ok()) {
    Refuse(id, ENOMEM);
    End(number);
  }
}

Status Donor::Accept(Session& session, const Welcome& welcome) {
  const auto device = DeviceOf(session.context);
  if (!device.ok()) return device.status();
  session.pd.reset(ibv_alloc_pd(session.context));
  if (session.pd == nullptr) return ErrnoStatus("no protection domain");
  if (Status status = session.connection->MakeQueuePair(session.pd.get(), device.value()->cq, {});
      !status.ok()) {
    return status;
  }
  return session.connection->Accept(welcome);
}

// Returns whether further completions may wait.
bool Donor::OnCompletions(Device& device) {
  ibv_cq* cq = nullptr;
  void* argument = nullptr;
  while (ibv_get_cq_event(device.channel, &cq, &argument) == 0) ibv_ack_cq_events(cq, 1);
  ibv_req_notify_cq(device.cq, 0);
  const Clock::time_point end = Clock::now() + kLongestRound;
  int messages = 0;
  for (int taken = 0; taken < kCompletionsInRound; taken++) {
    if (messages == kMessagesInRound || Clock::now() >= end) return true;
    ibv_wc completion{};
    if (ibv_poll_cq(device.cq, 1, &completion) <= 0) return false;
    messages += OnCompletion(completion) ? 1 : 0;
  }
  return true;
}

// Returns whether the completion was a message.
bool Donor::OnCompletion(const ibv_wc& completion) {
  auto* what = reinterpret_cast<Completable*>(completion.wr_id);
  Connection& connection = *what->connection;
  connection.OnCompletion(*what);
  const auto number = reinterpret_cast<uintptr_t>(connection.id()->context);
  const auto session = sessions_.find(number);
  if (session == sessions_.end()) return false;  // the session has ended
  if (completion.status != IBV_WC_SUCCESS) {
    End(number);
    return false;
  }
  if (what->kind == Completable::Kind::kSentMessage) return false;
  const auto message = connection.Received(*what, completion.byte_len);
  if (!message) {
    End(number);
    return true;
  }
  OnMessage(session->second, *message);
  connection.Rearm(*what);
  return true;
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
    auto memory = std::make_unique<LeasedMemory>(session.pd.get(), asked.bytes);
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
  // No transfer reaches the memory any more once the queue pair is aborted and the keys are gone.
  session->second.connection->Abort();
  session->second.leases.clear();
  if (ended_.size() >= kMostEnded) ended_.pop_front();
  ended_.push_back({std::move(session->second), Clock::now()});
  sessions_.erase(session);
  const std::lock_guard lock(mutex_);
  ledger_.RemoveSession(number);
}

// Frees what has ended, once its completions were taken.
void Donor::FreeEnded(bool all) {
  const Clock::time_point now = Clock::now();
  ended_.remove_if([&](const Ended& ended) {
    return all || ended.session.connection->idle() || now - ended.since > kLongestFlush;
  });
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
