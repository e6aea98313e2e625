// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/donor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

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
// Messages, in both directions, of all sessions and of as many that have ended.
constexpr int kCompletionEntries = 16384;
constexpr size_t kMostEnded = 256;
// Work of one round: a lease costs a registration of up to 1 GiB, which some devices pin and zero.
constexpr int kEventsInRound = 16;
constexpr int kCompletionsInRound = 1024;
constexpr auto kLongestRound = std::chrono::milliseconds(50);
constexpr LeaseLedger::Seconds kLongestSilence = 30;  // Run hangs, if it is longer
constexpr auto kLongestFlush = std::chrono::seconds(2);

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
  FreeEnded(true);
  for (const auto& [context, device] : devices_) {
    if (device.cq != nullptr) ibv_destroy_cq(device.cq);
    if (device.channel != nullptr) ibv_destroy_comp_channel(device.channel);
  }
}

void Donor::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
}

Status Donor::Run() {
  bool more = false;  // the last round has left work
  for (;;) {
    last_round_ = Now();
    std::vector<pollfd> ready{{stop_fd_.get(), POLLIN, 0}, {listener_.channel()->fd, POLLIN, 0}};
    for (const auto& [context, device] : devices_) ready.push_back({device.channel->fd, POLLIN, 0});
    if (poll(ready.data(), ready.size(), more ? 0 : kTickMilliseconds) < 0 && errno != EINTR) {
      return ErrnoStatus("poll");
    }
    if (ready[0].revents != 0) return OkStatus();
    more = OnEvents();
    if (listener_gone_) return {ENODEV, "the gateway or the RDMA device of this host is gone"};
    for (auto& [context, device] : devices_) more = OnCompletions(device) || more;
    more = HandleMessages() || more;
    std::vector<uint64_t> expired;
    {
      const std::lock_guard lock(mutex_);
      expired = ledger_.Expired(Now());
      // The leases of others are being freed already.
      std::erase_if(expired, [this](uint64_t session) { return !sessions_.contains(session); });
      counts_.sessions_expired += expired.size();
    }
    for (const uint64_t session : expired) End(session);
    more = FreeEnded(false) || more;
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
    if (rdma_get_cm_event(listener_.channel(), &event) != 0) return false;
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
    } else if (id == listener_.id()) {
      listener_gone_ = listener_gone_ || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
    } else if (type == RDMA_CM_EVENT_ESTABLISHED) {
      const std::lock_guard lock(mutex_);
      ledger_.Established(reinterpret_cast<uintptr_t>(id->context));
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
      OnDisconnected(reinterpret_cast<uintptr_t>(id->context));
    } else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
      End(reinterpret_cast<uintptr_t>(id->context));
    }
  }
  return true;
}

// A session that has not said that it ends keeps its leases until they expire. A gateway that stops
// disconnects all its programs, and they continue by another connection when it runs again.
void Donor::OnDisconnected(uint64_t number) {
  const auto session = sessions_.find(number);
  if (session == sessions_.end()) return;
  if (session->second.leases.empty()) {
    End(number);
    return;
  }
  if (session->second.brief) {
    const std::lock_guard lock(mutex_);
    ledger_.GiveWay(number);
  }
  turns_.Remove(number);
  session->second.received.clear();
  session->second.connection->Abort();
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
  if (Session* const earlier = FindEarlier(*hello, id)) {
    if (!hello->ends_earlier) {
      Continue(*earlier, std::move(connection), id);
      return;
    }
    End(earlier->number);
  }
  const std::string host = PeerAddress(id);
  const uint64_t number = ++last_session_;
  Welcome welcome;
  welcome.proof.session = number;
  if (getrandom(&welcome.proof.secret, sizeof welcome.proof.secret, 0) !=
      sizeof welcome.proof.secret) {
    Refuse(id, ENOMEM);
    return;
  }
  int error = 0;
  std::optional<uint64_t> surplus;
  {
    const std::lock_guard lock(mutex_);
    surplus = ledger_.Surplus();
    counts_.connections_ended += surplus ? 1 : 0;
  }
  if (surplus) End(*surplus);
  const auto add = [&] {
    const std::lock_guard lock(mutex_);
    return ledger_.AddSession(number, hello->tenant, host, Now());
  };
  error = add();
  while (error != 0 && MakeWay(error, hello->tenant, host)) error = add();
  {
    const std::lock_guard lock(mutex_);
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
  session.secret = welcome.proof.secret;
  session.tenant = hello->tenant;
  session.host = host;
  session.brief = hello->brief;
  session.context = id->verbs;
  session.connection = std::move(connection);
  id->context = reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
  if (!Accept(session, welcome).ok()) {
    Refuse(id, ENOMEM);
    End(number);
  }
}

// Returns the session that the connection request proves to be an earlier one of its program;
// nullptr: none.
Donor::Session* Donor::FindEarlier(const Hello& hello, const rdma_cm_id* id) {
  const auto known = sessions_.find(hello.earlier.session);
  const bool proves = known != sessions_.end() && known->second.secret == hello.earlier.secret &&
                      known->second.tenant == hello.tenant && known->second.context == id->verbs;
  return proves ? &known->second : nullptr;
}

// Gives the session its new connection. Nothing that is still under way on the earlier one reaches
// its memory any more.
void Donor::Continue(Session& session, std::unique_ptr<Connection> connection, rdma_cm_id* id) {
  Ended earlier;
  earlier.since = Clock::now();
  earlier.session.pd = session.pd;
  earlier.session.connection = std::move(session.connection);
  earlier.session.connection->id()->context = nullptr;
  earlier.session.connection->Abort();
  session.received.clear();
  turns_.Remove(session.number);
  AddEnded(std::move(earlier));
  session.connection = std::move(connection);
  id->context = reinterpret_cast<void*>(session.number);  // NOLINT(performance-no-int-to-ptr)
  Welcome welcome;
  welcome.proof = {session.number, session.secret};
  welcome.continued = true;
  {
    const std::lock_guard lock(mutex_);
    ledger_.Renew(session.number, Now());
    welcome.lease_seconds = static_cast<uint32_t>(ledger_.limits().lease_seconds);
    welcome.free_bytes = ledger_.FreeForSession(session.number);
    counts_.sessions_continued++;
  }
  if (Accept(session, welcome).ok()) return;
  Refuse(id, ENOMEM);
  End(session.number);
}

Status Donor::Accept(Session& session, const Welcome& welcome) {
  const auto device = DeviceOf(session.context);
  if (!device.ok()) return device.status();
  if (session.pd == nullptr) {
    ibv_pd* const pd = ibv_alloc_pd(session.context);
    if (pd == nullptr) return ErrnoStatus("no protection domain");
    session.pd = std::shared_ptr<ibv_pd>(pd, [](ibv_pd* old) { ibv_dealloc_pd(old); });
  }
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
  for (int taken = 0; taken < kCompletionsInRound; taken++) {
    ibv_wc completion{};
    if (ibv_poll_cq(device.cq, 1, &completion) <= 0) return false;
    OnCompletion(completion);
  }
  return true;
}

void Donor::OnCompletion(const ibv_wc& completion) {
  auto* what = reinterpret_cast<Completable*>(completion.wr_id);
  Connection& connection = *what->connection;
  connection.OnCompletion(*what);
  const auto number = reinterpret_cast<uintptr_t>(connection.id()->context);
  const auto session = sessions_.find(number);
  if (session == sessions_.end()) return;  // the session, or this connection of it, has ended
  // A broken connection may be that of a session whose gateway was restarted. Its leases end when
  // the session closes it, continues by another one, or stays silent.
  if (completion.status != IBV_WC_SUCCESS) return;
  if (what->kind == Completable::Kind::kSentMessage) return;
  const auto message = connection.Received(*what, completion.byte_len);
  if (!message || message->type == MessageType::kClose) {
    End(number);
    return;
  }
  session->second.received.push_back({what, *message});
  turns_.Add(number);
}

// Handles messages of one session after the other. Returns whether further ones wait.
bool Donor::HandleMessages() {
  const Clock::time_point end = Clock::now() + kLongestRound;
  for (Clock::time_point begin = Clock::now(); begin < end;) {
    const auto number = turns_.Take();
    if (!number) return false;
    Session& session = sessions_.at(*number);
    const Received received = session.received.front();
    session.received.pop_front();
    OnMessage(session, received.message);
    session.connection->Rearm(*received.buffer);
    const Clock::time_point now = Clock::now();
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(now - begin).count();
    turns_.Worked(*number, static_cast<uint64_t>(took));
    if (!session.received.empty()) turns_.Add(*number);
    begin = now;
  }
  return !turns_.empty();
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
    case MessageType::kClose:
      break;  // a donor's own words; OnCompletion has ended the session
  }
}

// Ends a session that was disconnected and gives way, and frees its memory. Returns whether there
// was one.
bool Donor::MakeWay(int error, const std::string& tenant, const std::string& host) {
  std::optional<uint64_t> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = ledger_.WayFor(error, tenant, host);
  }
  if (!gone) return false;
  End(*gone);  // unless its leases are being freed already
  for (Ended& ended : ended_) {
    if (ended.session.number == *gone) FreeLeases(ended.session, Clock::time_point::max());
  }
  return true;
}

void Donor::Grant(Session& session, const Message& asked) {
  Message reply;
  reply.type = MessageType::kLeased;
  reply.id = asked.id;
  const auto grant = [&] {
    const std::lock_guard lock(mutex_);
    std::tie(reply.error, reply.lease) = ledger_.Grant(session.number, asked.bytes);
    return reply.error;
  };
  while (grant() != 0 && MakeWay(reply.error, session.tenant, session.host)) {
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
  turns_.Remove(number);
  // No transfer reaches the memory any more once the queue pair is aborted.
  session->second.connection->Abort();
  AddEnded({std::move(session->second), Clock::now()});
  sessions_.erase(session);
}

void Donor::AddEnded(Ended ended) {
  if (ended_.size() >= kMostEnded) {
    FreeLeases(ended_.front().session, Clock::time_point::max());
    ended_.pop_front();
  }
  ended_.push_back(std::move(ended));
}

// Frees leases of a session that has ended, until that time. The memory counts as leased until it
// is freed.
void Donor::FreeLeases(Session& session, Clock::time_point end) {
  if (session.number == 0) return;
  while (!session.leases.empty() && Clock::now() < end) {
    const auto lease = session.leases.begin();
    lease->second.reset();
    const std::lock_guard lock(mutex_);
    ledger_.Return(session.number, lease->first);
    session.leases.erase(lease);
  }
  if (!session.leases.empty()) return;
  const std::lock_guard lock(mutex_);
  ledger_.RemoveSession(session.number);
  session.number = 0;
}

// Frees what has ended, once its completions were taken. Returns whether leases are left.
bool Donor::FreeEnded(bool all) {
  const Clock::time_point now = Clock::now();
  const Clock::time_point end = all ? Clock::time_point::max() : now + kLongestRound;
  for (Ended& ended : ended_) FreeLeases(ended.session, end);
  ended_.remove_if([&](const Ended& ended) {
    return ended.session.number == 0 &&
           (all || ended.session.connection->idle() || now - ended.since > kLongestFlush);
  });
  return std::any_of(ended_.begin(), ended_.end(),
                     [](const Ended& ended) { return ended.session.number != 0; });
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
