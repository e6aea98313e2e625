// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/attach_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {
namespace {

constexpr int kBacklog = 128;
constexpr int kRequestsPerRound = 16;       // requests of one session per round, for fairness
constexpr uint64_t kObjectsOfSession = 64;  // weight of its own memory (heap_return.h)
constexpr Duration kDescriptorsGone = Milliseconds(100);
// Limit of a pool's refused connections whose close has not returned. At the limit, no connection
// is accepted.
constexpr size_t kMostClosing = 64;
constexpr Duration kAttachAgain = Milliseconds(4);
constexpr Duration kBlockedAgain = Milliseconds(50);
constexpr Duration kDescriptorsInFlight = Milliseconds(20);
constexpr int kAnswerAgainMs = 20;

Status SystemError(const std::string& what) {
  const int error = errno;
  return {error, what + ": " + std::strerror(error)};
}

// Returns true if a process listens at the address.
bool Answers(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

}  // namespace

AttachServer::AttachServer(const SessionUses& uses)
    : uses_(uses),
      services_(uses.services),
      gate_(
          services_,
          [this](HeldAttach attach, tenant::Pool& pool) {
            Begin(std::move(attach.socket), pool, attach.path, std::move(attach.peer),
                  attach.limits);
          },
          [this](ProgramConnection socket, int error, const std::string& reason) {
            Refuse(std::move(socket), error, reason);
          }) {
  services_.on_copier_ended = [this] { GiveWhenIdle(); };
  services_.loop.LookAt(active_rings_);
}

AttachServer::~AttachServer() {
  services_.on_copier_ended = nullptr;
  services_.loop.LookAway(active_rings_);
  StopListening();
  services_.loop.Cancel(blocked_timer_);
  services_.loop.Cancel(unaccepted_timer_);
  for (auto& [id, connection] : connections_) Close(*connection);
}

StatusOr<UniqueFd> AttachServer::Open(const SocketPlace& place) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (place.path.empty() || place.path.size() >= sizeof address.sun_path) {
    return Status(ENAMETOOLONG, "attach socket " + place.path + ": a socket's path has 1 to " +
                                    std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, place.path.data(), place.path.size());
  struct stat existing;
  if (::lstat(place.path.c_str(), &existing) == 0) {
    if (!S_ISSOCK(existing.st_mode)) {
      return Status(EEXIST,
                    "attach socket " + place.path + ": a file that is no socket is in the way");
    }
    // The process that keeps the sockets of an earlier daemon ends a moment after it. Once that
    // time is over, a socket that answers is somebody else's.
    bool answers = Answers(address);
    for (; answers && waits_for_earlier_ != 0; --waits_for_earlier_, answers = Answers(address))
      (void)::poll(nullptr, 0, kAnswerAgainMs);
    if (answers) {
      return Status(EADDRINUSE, "attach socket " + place.path +
                                    ": another daemon listens there; stop it or use another path");
    }
    ::unlink(place.path.c_str());
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return SystemError("attach socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return SystemError("attach socket " + place.path +
                       ": cannot be made (does the directory exist, may we write there?)");
  }
  // Sets the rights first: before listen() no process can connect.
  if (::chmod(place.path.c_str(), place.mode) != 0 ||
      ::lchown(place.path.c_str(), place.uid, place.gid) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    Status failed = SystemError("attach socket " + place.path);
    ::unlink(place.path.c_str());
    return failed;
  }
  return socket;
}

Status AttachServer::Listen(const SocketPlace& place, const std::string& pool) {
  UniqueFd socket;
  if (inherited_ != nullptr) socket = inherited_->Take(FdKind::kAttachListener, place.path);
  if (socket.valid()) {
    if (::chmod(place.path.c_str(), place.mode) != 0 ||
        ::lchown(place.path.c_str(), place.uid, place.gid) != 0)
      return SystemError("attach socket " + place.path);
  } else {
    auto opened = Open(place);
    if (!opened.ok()) return opened.status();
    socket = std::move(*opened);
  }
  auto& listener = listeners_[place.path];
  listener = std::make_unique<Listener>(services_.options.session);
  listener->socket = std::move(socket);
  services_.descriptors->Keep(listener->socket.get());
  listener->path = place.path;
  listener->pool = pool;
  listener->watch = services_.loop.Watch(listener->socket.get(), ListenerEvents(),
                                         [this, at = listener.get()](uint32_t) { AcceptOne(*at); });
  return OkStatus();
}

void AttachServer::Offer(OfferedFds& fds) const {
  for (const auto& [path, listener] : listeners_)
    fds.push_back({FdKind::kAttachListener, path, listener->socket.get()});
}

void AttachServer::SetAccepting(bool accepting) {
  accepting_ = accepting;
  for (auto& [path, listener] : listeners_) services_.loop.Rearm(listener->watch, ListenerEvents());
}

void AttachServer::Close(const std::string& path, Listener& listener) {
  services_.loop.Cancel(listener.timer);
  services_.loop.Cancel(listener.expected_timer);
  services_.loop.Unwatch(listener.watch);
  ::unlink(path.c_str());
  CloseSocket(listener);
}

void AttachServer::CloseSocket(Listener& listener) {
  ::shutdown(listener.socket.get(), SHUT_RDWR);  // no further connections
  const tenant::Pool* const pool = services_.pools.FindPool(listener.pool);
  unaccepted_.push_back({std::move(listener.socket),
                         pool == nullptr ? ClientCallQueue::Make() : StrangersOf(*pool),
                         pool == nullptr ? services_.descriptors : services_.ReceiverOf(*pool)});
  CloseUnaccepted();
}

void AttachServer::CloseUnaccepted() {
  std::erase_if(unaccepted_, [this](const Unaccepted& one) {
    while (true) {
      UniqueFd waiting(::accept4(one.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!waiting.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (!waiting.valid()) break;
      ProgramConnection(std::move(waiting), one.call_queue, one.receiver).Close();
    }
    const bool lacks = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (!lacks) services_.descriptors->Release(one.socket.get());
    return !lacks;
  });
  if (unaccepted_.empty() || unaccepted_timer_ != 0) return;
  unaccepted_timer_ = services_.loop.At(ControlLoop::Now() + kDescriptorsGone, [this] {
    unaccepted_timer_ = 0;
    CloseUnaccepted();
  });
}

void AttachServer::StopListening(const std::string& path) {
  const auto known = listeners_.find(path);
  if (known == listeners_.end()) return;
  Close(path, *known->second);
  listeners_.erase(known);
  services_.slots.Forget(path);
}

void AttachServer::StopListening() {
  for (auto& [path, listener] : listeners_) Close(path, *listener);
  listeners_.clear();
}

void AttachServer::Expect(const std::string& path, bool program) {
  const auto known = listeners_.find(path);
  if (known == listeners_.end()) return;
  Listener* const listener = known->second.get();
  services_.loop.Cancel(std::exchange(listener->expected_timer, 0));
  if (!program) return;
  const Duration within = services_.options.expected_within;
  listener->expected_timer =
      services_.loop.At(ControlLoop::Now() + within, [this, listener, within] {
        listener->expected_timer = 0;
        services_.reports.Tell(
            "SLOT_UNUSED", listener->pool, listener->path,
            listener->pool + ": a container has had " + listener->path + " since its start " +
                std::to_string(within.ns / Seconds(1).ns) +
                " s ago, and no program has come by it. If one should have: an LD_PRELOAD of "
                "the pod's own takes the place of the one that brings the library (name it there, "
                "too), and programs that are linked statically or with musl do not load it");
      });
}

void AttachServer::Pause(Listener& listener, Duration pause) {
  services_.loop.Rearm(listener.watch, 0);
  // SetAccepting may have ended the pause before.
  services_.loop.Cancel(listener.timer);
  listener.timer = services_.loop.At(ControlLoop::Now() + pause, [this, &listener] {
    listener.timer = 0;
    services_.loop.Rearm(listener.watch, ListenerEvents());
  });
}

const std::shared_ptr<ClientCallQueue>& AttachServer::StrangersOf(const tenant::Pool& pool) {
  std::erase_if(strangers_, [&](const auto& entry) {
    return entry.first != pool.id() && entry.second.use_count() == 1;
  });
  std::shared_ptr<ClientCallQueue>& call_queue = strangers_[pool.id()];
  if (call_queue == nullptr) call_queue = ClientCallQueue::Make();
  return call_queue;
}

void AttachServer::AcceptOne(Listener& listener) {
  // The loop may still have an event from before SetAccepting.
  if (!accepting_) return;
  const tenant::Pool& pool = *services_.pools.FindPool(listener.pool);
  if (StrangersOf(pool)->held() >= kMostClosing) {
    services_.reports.Say(
        Severity::kWarning,
        "attach: " + listener.pool +
            " waits: programs that were refused block the close of what they sent");
    return Pause(listener, kDescriptorsGone);
  }
  if (!listener.attaches.Take(ControlLoop::Now())) return Pause(listener, kAttachAgain);
  UniqueFd socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) {
    services_.loop.Cancel(std::exchange(listener.expected_timer, 0));
    Attach(std::move(socket), *services_.pools.FindPool(listener.pool), listener.path);
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    // The pending connection would wake the loop without end.
    services_.reports.Say(Severity::kWarning, std::string("attach: ") + std::strerror(errno) +
                                                  "; raise the daemon's limit of open files");
    Pause(listener, kDescriptorsGone);
  }
}

void AttachServer::Refuse(ProgramConnection socket, int error, const std::string& reason) const {
  rocegw_refusal refusal{};
  rocegw_reply& reply = refusal.header;
  reply.type = ROCEGW_MSG_HELLO;
  reply.length = sizeof refusal;
  reply.error = error;
  reason.copy(refusal.reason, sizeof refusal.reason - 1);
  // Unread input at close would be another error for the client.
  MessageSocket connection(std::move(socket));
  const MessageSocket::Received greeting = connection.Receive();
  if (greeting.bytes.size() >= sizeof(rocegw_request))
    reply.request_id = DecodeAs<rocegw_request>(greeting.bytes).request_id;
  connection.Send({reinterpret_cast<const uint8_t*>(&refusal), sizeof refusal}, -1);
}

void AttachServer::Attach(UniqueFd accepted, tenant::Pool& pool, const std::string& path) {
  ProgramConnection socket(std::move(accepted), StrangersOf(pool), services_.ReceiverOf(pool));
  auto peer = IdentifyPeer(socket.get());
  if (!peer.ok()) {
    const bool none_left = peer.status().error() == EMFILE || peer.status().error() == ENFILE;
    services_.reports.Say(none_left ? Severity::kWarning : Severity::kDebug,
                          "attach refused: " + peer.status().text());
    pool.CountAttach(tenant::AttachOutcome::kFailed);
    return Refuse(std::move(socket), none_left ? EMFILE : EACCES, "");
  }
  if (pool.settings().identity_required)
    return gate_.Hold(std::move(socket), pool, path, std::move(*peer));
  Begin(std::move(socket), pool, path, std::move(*peer), {});
}

void AttachServer::Begin(ProgramConnection socket, tenant::Pool& pool, const std::string& path,
                         Peer peer, const tenant::SlotLimits& limits) {
  int refused = services_.rules.CheckDrain(pool, "attach");
  std::vector<tenant::Charge> charges(2);
  if (refused == 0) refused = services_.rules.Take(pool, Resource::kSessions, 1, charges[0]);
  const uint64_t descriptors = DescriptorsOfSession(services_.workers.worker_count());
  if (refused == 0)
    refused = services_.rules.Take(pool, Resource::kDescriptors, descriptors, charges[1]);
  if (refused != 0) {
    pool.CountAttach(tenant::AttachOutcome::kRefused);
    return Refuse(std::move(socket), refused, "");
  }
  Connection& added = Add(next_id_++, std::move(socket), pool, path, std::move(peer),
                          services_.slots.Of(pool, path, limits), std::move(charges));
  if (watching_) Watch(added);
}

AttachServer::Connection& AttachServer::Add(uint32_t id, ProgramConnection socket,
                                            tenant::Pool& pool, const std::string& path, Peer peer,
                                            std::shared_ptr<tenant::SlotShare> slot,
                                            std::vector<tenant::Charge> charges) {
  auto owned = std::make_unique<Connection>(*this, std::move(socket), path);
  Connection* const connection = owned.get();
  connection->charges = std::move(charges);
  connection->tokens = services_.options.session.request_burst;
  connection->tokens_at = ControlLoop::Now();
  connection->session =
      std::make_unique<ClientSession>(SessionId{id}, uses_, pool, std::move(slot), std::move(peer),
                                      connection->messages, connection->call_queue);
  connection->session->exchange().on_ready = [this, connection] { UpdateInterest(*connection); };
  connection->session->on_ended = [this, id] { ended_.push_back(id); };
  connection->session->event_limits().backlog().on_fewer = [this, connection] {
    if (connection->closed || connection->session->ending()) return;
    if (!connection->session->event_limits().PushBack()) UpdateInterest(*connection);
  };
  connections_.emplace(id, std::move(owned));
  return *connection;
}

void AttachServer::Watch(Connection& connection) {
  connection.watch =
      services_.loop.Watch(connection.messages.socket().fd(), connection.watched,
                           [this, &connection](uint32_t events) { OnSocket(connection, events); });
  if (const int process = connection.session->peer().process.get(); process >= 0) {
    connection.process_watch = services_.loop.Watch(
        process, EPOLLIN,
        [this, &connection](uint32_t) { Drop(connection, "its process has ended"); });
  }
  if (connection.session->greeted()) return;
  connection.hello_timer = services_.loop.At(
      ControlLoop::Now() + services_.options.session.hello_within, [this, &connection] {
        if (!connection.session->greeted()) Drop(connection, "it did not greet in time");
      });
}

void AttachServer::SetReading(bool reading) {
  reading_ = reading;
  // Requests that wait for their pool's turn must not keep the sessions from coming to rest.
  services_.receivers.SetPaced(reading);
  if (!reading) CloseRings();
  for (auto& [id, connection] : connections_) UpdateInterest(*connection);
}

void AttachServer::CloseRings() {
  for (auto& [id, connection] : connections_) {
    if (connection->closed || connection->session->ending()) continue;
    connection->messages.CloseRings();
    if (connection->messages.closing()) active_rings_.Note(*connection);
  }
}

void AttachServer::SetWatching(bool watching) {
  if (watching_ == watching) return;
  watching_ = watching;
  for (auto& [id, connection] : connections_) {
    if (connection->closed || connection->session->ending()) continue;
    watching ? Watch(*connection) : StopWatching(*connection);
  }
}

void AttachServer::OnSocket(Connection& connection, uint32_t events) {
  if (connection.closed) return;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Drop(connection, "it closed the connection");
  if ((events & EPOLLOUT) != 0) connection.messages.socket().Drain();
  const bool readable = (events & (EPOLLIN | EPOLLRDHUP)) != 0;
  const bool too_early = readable && (connection.session->exchange().busy() ||
                                      connection.session->event_limits().PushBack());
  if (readable) ReadRequests(connection, true);
  AfterReading(connection, too_early);
}

void AttachServer::OnRing(Connection& connection) {
  ReadRequests(connection, false);
  AfterReading(connection, false);
}

void AttachServer::OnRingWake(Connection& connection) {
  if (connection.closed || connection.session->ending()) return;
  active_rings_.Note(connection);
  // A wake-up without a request that may be read counts like a request.
  if (!connection.MayRead() && !TakeToken(connection)) connection.messages.SetHeedsWakes(false);
}

void AttachServer::AfterReading(Connection& connection, bool too_early) {
  if (connection.closed) return;
  if (connection.session->ending()) return LetGo(connection);
  const MessageSocket& socket = connection.messages.socket();
  if (socket.failed()) return Drop(connection, "messages to it could not be sent");
  if (connection.messages.has_rings()) active_rings_.Note(connection);
  // Most clients wait for each answer, so no input arrives during a request. Changing the watch
  // twice would cost two system calls for nothing.
  const bool as_it_is = connection.session->exchange().busy() && !too_early &&
                        !socket.has_backlog() && (connection.watched & EPOLLOUT) == 0;
  if (!as_it_is) UpdateInterest(connection);
}

bool AttachServer::MayReadNext(const Connection& connection) const {
  const ClientSession& session = *connection.session;
  if (connection.closed || session.ending() || session.exchange().busy()) return false;
  if (connection.messages.socket().has_backlog()) return false;
  if (connection.messages.closing()) return true;
  return !session.event_limits().PushBack() && MayRead(connection);
}

bool AttachServer::Connection::MayRead() const {
  return messages.HasRequest() && server.MayReadNext(*this) &&
         (rate_timer == 0 || messages.closing());
}

bool AttachServer::TakeToken(Connection& connection) {
  const SessionBounds& bounds = services_.options.session;
  const TimePoint now = ControlLoop::Now();
  const double seconds = static_cast<double>((now - connection.tokens_at).ns) * 1e-9;
  connection.tokens = std::min<double>(bounds.request_burst,
                                       connection.tokens + seconds * bounds.requests_per_second);
  connection.tokens_at = now;
  if (connection.tokens < 1) {
    if (connection.rate_timer == 0) {
      connection.rate_timer = services_.loop.At(now + Milliseconds(5), [this, &connection] {
        connection.rate_timer = 0;
        connection.messages.SetHeedsWakes(true);
        UpdateInterest(connection);
      });
    }
    return false;
  }
  connection.tokens -= 1;
  return true;
}

void AttachServer::ReadRequests(Connection& connection, bool socket) {
  ClientSession& session = *connection.session;
  for (int i = 0; i < kRequestsPerRound; ++i) {
    if (!MayReadNext(connection)) return;
    if (!socket && !connection.messages.HasRequest()) return;
    if (!connection.messages.closing() && !TakeToken(connection)) return;
    MessageSocket::Received received = connection.messages.Receive(socket);
    switch (received.outcome) {
      case MessageSocket::Outcome::kNothing:
        return;
      case MessageSocket::Outcome::kClosed:
        return Drop(connection, "it closed the connection");
      case MessageSocket::Outcome::kBroken:
        return Drop(connection, received.reason);
      case MessageSocket::Outcome::kMessage:
        break;
    }
    session.exchange().OnMessage(received.bytes,
                                 received.passes ? connection.messages.socket().fd() : -1);
  }
}

void AttachServer::UpdateInterest(Connection& connection) {
  if (connection.closed || connection.watch == 0) return;
  const MessageSocket& socket = connection.messages.socket();
  uint32_t events = 0;
  if (socket.waits_for_descriptors() || socket.failed()) {
    RetryLater(connection);
  } else if (socket.has_backlog()) {
    events |= EPOLLOUT;
  } else if (MayReadNext(connection) && connection.rate_timer == 0) {
    events |= EPOLLIN | EPOLLRDHUP;
  }
  if (events == connection.watched) return;
  connection.watched = events;
  services_.loop.Rearm(connection.watch, events);
}

void AttachServer::RetryLater(Connection& connection) {
  if (connection.retry_timer != 0) return;
  connection.retry_timer =
      services_.loop.At(ControlLoop::Now() + kDescriptorsInFlight, [this, &connection] {
        connection.retry_timer = 0;
        if (connection.messages.socket().waits_for_descriptors())
          TellDescriptorsInFlight(connection);
        OnSocket(connection, EPOLLOUT);
      });
}

void AttachServer::TellDescriptorsInFlight(const Connection& connection) {
  const std::string& pool = connection.session->pool().name();
  services_.reports.Tell(
      "QUOTA_EXCEEDED", pool, "descriptors in flight",
      pool +
          ": messages to a program wait because too many descriptors of the daemon's "
          "user lie unread in sockets; raise the daemon's limit of open files or "
          "give it CAP_SYS_RESOURCE, which exempts it");
}

void AttachServer::Drop(Connection& connection, const std::string& reason) {
  connection.session->End(reason);
  LetGo(connection);
}

// Closes a connection that only tested if the socket answers. The client sees the close when its
// slot is free (Reap), since the next program may need the slot.
void AttachServer::LetGo(Connection& connection) {
  connection.session->greeted() ? Close(connection) : StopWatching(connection);
}

void AttachServer::StopWatching(Connection& connection) {
  active_rings_.Remove(connection);
  services_.loop.Unwatch(std::exchange(connection.watch, 0));
  services_.loop.Unwatch(std::exchange(connection.process_watch, 0));
  services_.loop.Cancel(std::exchange(connection.hello_timer, 0));
  services_.loop.Cancel(std::exchange(connection.rate_timer, 0));
  services_.loop.Cancel(std::exchange(connection.retry_timer, 0));
}

void AttachServer::Close(Connection& connection) {
  if (connection.closed) return;
  connection.closed = true;
  StopWatching(connection);
  connection.messages.Close();
}

void AttachServer::End(SessionId id, const std::string& reason) {
  const auto it = connections_.find(id.value);
  if (it != connections_.end()) Drop(*it->second, reason);
}

void AttachServer::EndAll(const std::string& reason) {
  for (auto& [id, connection] : connections_) Drop(*connection, reason);
}

uint32_t AttachServer::Clear(const std::string& path, const std::string& reason) {
  gate_.Clear(path);
  uint32_t count = 0;
  for (auto& [id, connection] : connections_) {
    if (connection->path != path) continue;
    ++count;
    Drop(*connection, reason);
  }
  return count;
}

void AttachServer::AfterRound() {
  wakes_.Wake();
  Reap();
}

void AttachServer::Reap() {
  while (!ended_.empty()) {
    const uint32_t id = ended_.back();
    ended_.pop_back();
    const auto it = connections_.find(id);
    Close(*it->second);
    ClientSession& session = *it->second->session;
    blocked_.push_back({&session.pool(), it->second->call_queue, session.memory().remains(),
                        std::move(it->second->charges), session.Row()});
    connections_.erase(it);
    services_.heap.Destroyed(kObjectsOfSession);
  }
  GiveWhenIdle();
}

void AttachServer::GiveWhenIdle() {
  bool leaving = false;
  std::erase_if(blocked_, [&](const Blocked& blocked) {
    if (blocked.CallsOut() != 0) return false;
    leaving = leaving || blocked.pool->leaving();
    return true;
  });
  if (leaving) services_.pools.Reap();
  if (blocked_.empty() || blocked_timer_ != 0) return;
  blocked_timer_ = services_.loop.At(ControlLoop::Now() + kBlockedAgain, [this] {
    blocked_timer_ = 0;
    GiveWhenIdle();
  });
}

ClientSession* AttachServer::Find(SessionId id) const {
  const auto it = connections_.find(id.value);
  return it == connections_.end() ? nullptr : it->second->session.get();
}

}  // namespace rocegw::session
