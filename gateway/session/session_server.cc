// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/session_server.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

namespace rocegw::session {
namespace {

// Memory of a packet in the receive buffer, as Linux counts a packet of 1500 bytes. Bounds the
// packets that one channel's receiver accepts ahead.
constexpr uint32_t kReceiveBufferOfPacket = 2304;
constexpr uint32_t kLeastWindow = 64;
constexpr uint32_t kMostWindow = 4096;

// enum ibv_event_type
constexpr uint32_t kPortActiveEvent = 9;
constexpr uint32_t kPortErrorEvent = 10;
constexpr uint32_t kGidChangeEvent = 18;

// Interval of retries for a full ring to a worker.
constexpr Duration kRetry = Milliseconds(1);

// A session may use at most this fraction of the descriptors that the system allows.
constexpr rlim_t kDescriptorShare = 8;
// Descriptors that no program gets: ports, listeners, logs and captures of the daemon, and
// connections that are not sessions yet.
constexpr rlim_t kLeastKept = 64;
constexpr rlim_t kMostKept = 1024;

Options WithinDescriptors(Options options) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    const rlim_t share = std::max<rlim_t>(limit.rlim_cur / kDescriptorShare, 16);
    options.session.event_channels =
        static_cast<uint32_t>(std::min<rlim_t>(options.session.event_channels, share));
    // In a program's own process the program manages its descriptors.
    if (options.memory_way != MemoryWay::kOwn) {
      const rlim_t kept = std::clamp<rlim_t>(limit.rlim_cur / 4, kLeastKept, kMostKept);
      options.limits.descriptors = limit.rlim_cur - std::min(kept, limit.rlim_cur);
    }
  }
  return options;
}

}  // namespace

SessionServer::SessionServer(ControlLoop& loop, const std::vector<worker::WorkerLink*>& links,
                             const port::SteeringTable& steering, std::vector<Device> devices,
                             Options options, Log log, SourceLookup lookup)
    : drain_(loop, [this](OnDeadline action) { AtDrainDeadline(action); }),
      services_(loop, links, steering, std::move(devices), WithinDescriptors(std::move(options)),
                drain_, std::move(log)),
      refill_(loop, services_.options.refill_after),
      cm_(
          services_, refill_, [this](SessionId id) { return attach_.Find(id); }, std::move(lookup)),
      captures_(services_, [this](const std::string& scope,
                                  const std::function<void(Qpn)>& add) { ListQps(scope, add); }),
      attach_({services_, cm_, reserves_, captures_}),
      slots_(services_, attach_, services_.options.slots_dir) {
  if (!services_.options.awaits_state) {
    if (services_.options.gateways.channels) TakeChannelNumbers();
    UseChannels();
    cm_.OfferChannels(Acceptors());
  }
  services_.workers.on_mad = [this](WorkerIndex, const worker::MadReceived& mad) {
    cm_.OnMad(mad);
  };
  services_.workers.on_async_event = [this](const worker::AsyncEventRaised& event) {
    if (XrcDomains::IsDomain(event.session)) return TellOpeners(event);
    if (ClientSession* const session = attach_.Find(event.session)) session->OnAsyncEvent(event);
  };
  services_.workers.on_session_stopped = [this](const worker::SessionStopped& stopped) {
    attach_.End(stopped.session, stopped.reason);
  };
  services_.workers.on_peer_changed = [this](const worker::PeerChanged& changed) {
    cm_.ForgetPeer(changed.peer);
  };
  services_.workers.on_rate_reached = [this](const worker::RateReached& reached) {
    services_.pools.ForEachPool([&](const tenant::Pool& pool) {
      if (&pool.share() == reached.pool)
        services_.rules.TellRefused(pool, pool.HeldBack(reached.rate, reached.by));
    });
  };
  services_.workers.on_channel_refused = [this](const worker::ChannelRefused& refused) {
    services_.pools.ForEachPool([&](const tenant::Pool& pool) {
      if (&pool.share() == refused.pool)
        services_.rules.TellRefused(pool, pool.ChannelRefused(refused.by));
    });
  };
  std::set<int> wake_fds;
  for (const worker::WorkerLink* link : links) wake_fds.insert(link->control_wake_fd);
  for (const int fd : wake_fds) {
    watches_.push_back(loop.Watch(fd, EPOLLIN, [fd](uint32_t) {
      uint64_t value = 0;
      (void)!::read(fd, &value, sizeof value);
    }));
  }
  watches_.push_back(loop.Watch(services_.returned_calls->fd(), EPOLLIN,
                                [this](uint32_t) { services_.returned_calls->TakeAll(); }));
  loop.LookAt(services_.workers);
  loop.AfterRound([this] { AfterRound(); });
}

// Takes the acceptor numbers, which no queue pair can have while the gateway runs.
void SessionServer::TakeChannelNumbers() {
  const TimePoint now = ControlLoop::Now();
  for (size_t i = 0; i < services_.workers.worker_count(); ++i) {
    const auto worker = static_cast<WorkerIndex>(i);
    const auto acceptor = services_.qpns.Take(worker, now);
    if (!acceptor) return channel_numbers_.clear();
    ChannelNumbers& taken = channel_numbers_.emplace_back();
    taken.acceptor = *acceptor;
    while (taken.numbers.size() < kChannelsPerWorker) {
      const auto number = services_.qpns.Take(worker, now);
      if (!number) break;
      taken.numbers.push_back(*number);
    }
  }
}

std::vector<Qpn> SessionServer::Acceptors() const {
  std::vector<Qpn> acceptors;
  for (const ChannelNumbers& numbers : channel_numbers_) acceptors.push_back(numbers.acceptor);
  return acceptors;
}

void SessionServer::UseChannels() {
  for (size_t i = 0; i < channel_numbers_.size(); ++i) {
    channel::ChannelOptions options;
    options.acceptor = channel_numbers_[i].acceptor;
    options.numbers = channel_numbers_[i].numbers;
    options.instance = cm_.engine().discovery().own().instance;
    options.worker = static_cast<WorkerIndex>(i);
    options.paths = services_.options.gateways.paths;
    options.features = services_.options.gateways.features | wire::kOptionChannel;
    const uint32_t window = services_.options.gateways.window;
    if (window != 0)
      options.window = std::clamp(window / kReceiveBufferOfPacket, kLeastWindow, kMostWindow);
    options.secret = {services_.random.Next64(), services_.random.Next64()};
    services_.workers.Tell(static_cast<WorkerIndex>(i), worker::UseChannels{std::move(options)});
  }
}

void SessionServer::SetMember(const wire::Gid& peer, bool member) {
  cm_.SetMember(peer, member);
  services_.workers.TellAll(worker::NameMember{peer, member});
}

void SessionServer::SetKeys(const FleetKeys& keys) {
  cm_.SetKeys(keys);
  services_.workers.TellAll(worker::UseKeys{keys});
}

SessionServer::~SessionServer() {
  services_.loop.AfterRound({});
  services_.loop.LookAway(services_.workers);
  services_.loop.Cancel(retry_timer_);
  for (const ControlLoop::WatchId watch : watches_) services_.loop.Unwatch(watch);
}

void SessionServer::TellOpeners(const worker::AsyncEventRaised& event) {
  const XrcTarget* const target = services_.xrc.FindTarget(event.session, event.qpn);
  if (target == nullptr) return;
  for (const XrcOpener& opener : target->openers) {
    worker::AsyncEventRaised theirs = event;
    theirs.session = opener.session;
    theirs.handle = opener.handle;
    theirs.cookie = opener.cookie;
    if (ClientSession* const session = attach_.Find(opener.session)) session->OnAsyncEvent(theirs);
  }
}

void SessionServer::ListQps(const std::string& scope, const std::function<void(Qpn)>& add) {
  attach_.ForEach([&](const ClientSession& session) {
    if (!tenant::IsInScope(scope, session.pool().name())) return;
    session.objects().qps.ForEach([&](uint32_t, const Qp& qp) { add(qp.qpn); });
  });
}

void SessionServer::AfterRound() {
  attach_.AfterRound();
  if (services_.workers.Flush() && retry_timer_ == 0) {
    retry_timer_ = services_.loop.At(ControlLoop::Now() + kRetry, [this] { retry_timer_ = 0; });
  }
  if (shutdown_done_ && attach_.session_count() == 0) std::exchange(shutdown_done_, {})();
}

void SessionServer::AtDrainDeadline(OnDeadline action) {
  switch (action) {
    case OnDeadline::kKeep:
      return;
    case OnDeadline::kDisconnect:
      services_.reports.Say(Severity::kWarning,
                            "drain: its time is over, connections are taken down");
      return attach_.ForEach([](ClientSession& session) { session.DisconnectAll(); });
    case OnDeadline::kAbort:
      services_.reports.Say(Severity::kWarning, "drain: its time is over, sessions are ended");
      return attach_.EndAll("the time to drain the gateway is over");
  }
}

void SessionServer::SetCapacity(const tenant::Amounts& capacity) {
  services_.pools.SetCapacity(capacity);
}

void SessionServer::SetTenant(const tenant::TenantSettings& tenant) {
  const tenant::Tenant* const known = services_.pools.FindTenant(tenant.name);
  const bool same = known != nullptr && known->settings().allowed_peers == tenant.allowed_peers;
  services_.pools.SetTenant(tenant);
  if (!same) peer_review_.OfTenant(tenant.name);
}

void SessionServer::RemoveTenant(const std::string& name) {
  if (name != tenant::TenantOf(kDefaultPool)) return services_.pools.RemoveTenant(name);
  tenant::TenantSettings unset;
  unset.name = name;
  SetTenant(unset);
}

void SessionServer::SetPool(const tenant::PoolSettings& pool, const SlotRights& rights) {
  CloseReserveOf(pool.name, pool.uid);
  const tenant::Pool* const known = services_.pools.FindPool(pool.name);
  const bool same = known != nullptr && known->settings().allowed_peers == pool.allowed_peers;
  tenant::Pool& now = services_.pools.SetPool(pool);
  reserves_.Set(now);
  if (!same) peer_review_.OfPool(now);
  slots_.Set(pool, rights);
  AddressesMoved();
}

void SessionServer::AddressesMoved() {
  captures_.PoolsChanged();
  const bool had = services_.devices.addresses_are_owned();
  services_.devices.ForgetViews();
  if (!had && !services_.devices.addresses_are_owned()) return;
  cm_.DevicesChanged();
  attach_.ForEach([&](ClientSession& session) {
    for (size_t d = 0; d < services_.devices.size(); ++d)
      session.OnPortEvent(static_cast<uint32_t>(d), kGidChangeEvent);
  });
}

void SessionServer::CloseReserveOf(const std::string& name, const std::string& new_uid) {
  const tenant::Pool* const old = services_.pools.FindPool(name);
  if (old != nullptr && old->settings().uid != new_uid) reserves_.Close(*old);
}

void SessionServer::RemovePool(const std::string& name) {
  slots_.Remove(name);
  if (name == kDefaultPool) {
    const tenant::PoolSettings settings = DefaultPool(services_.options);
    CloseReserveOf(name, settings.uid);
    reserves_.Set(services_.pools.SetPool(settings));
  } else {
    if (const tenant::Pool* const old = services_.pools.FindPool(name)) reserves_.Close(*old);
    services_.pools.RemovePool(name);
  }
  AddressesMoved();
}

void SessionServer::UpdateDevice(size_t index, Device device) {
  const bool was_up = services_.devices[index].up;
  const bool same_gids = services_.devices[index].gids == device.gids;
  services_.devices.Update(index, std::move(device));
  cm_.DevicesChanged();
  const bool is_up = services_.devices[index].up;
  attach_.ForEach([&](ClientSession& session) {
    if (was_up != is_up) {
      session.OnPortEvent(static_cast<uint32_t>(index), is_up ? kPortActiveEvent : kPortErrorEvent);
    }
    if (!same_gids) session.OnPortEvent(static_cast<uint32_t>(index), kGidChangeEvent);
  });
}

void SessionServer::Shutdown(std::function<void()> done) {
  captures_.StopAll();
  attach_.StopListening();
  attach_.gate().DropAll();
  attach_.EndAll("the gateway stops");
  shutdown_done_ = std::move(done);
}

void SessionServer::Snapshot(const StateQuery& query, std::function<void(StateSnapshot)> done) {
  // Shared, so that it can be called here if the loop does not take the task.
  auto shared = std::make_shared<std::function<void(StateSnapshot)>>(std::move(done));
  if (!services_.loop.Post([this, query, shared] { TakeSnapshot(query, std::move(*shared)); }))
    (*shared)({});
}

}  // namespace rocegw::session
