// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/scenario.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gateway/wire/gateway_mad.h"
#include "tests/sim/oracle/correspondent.h"
#include "tests/sim/oracle/format.h"
#include "tests/sim/oracle/talker.h"

namespace rocegw::sim {
namespace {

constexpr Duration kLongest = Seconds(300);
// Late copies may still be in flight when all speakers are done.
constexpr Duration kAfterwards = Milliseconds(20);
constexpr uint64_t kMostEvents = 20'000'000;
// Hand-overs are at most so many events apart; replacements of workers, which rest for several
// events, more.
constexpr uint64_t kEventsBetween = 100;
constexpr uint64_t kEventsBetweenReplacements = 400;

class World {
 public:
  World(uint64_t seed, Sabotage sabotage, OracleChannels channels, OracleHandOvers hand_overs)
      : random_(seed),
        channel_random_(Mix(~seed)),
        order_random_(Mix(Mix(seed) + 1)),
        memory_random_(Mix(Mix(seed) + 2)),
        shared_random_(Mix(Mix(seed) + 3)),
        endpoint_random_(Mix(Mix(seed) + 4)),
        window_random_(Mix(Mix(seed) + 5)),
        endpoint_window_random_(Mix(Mix(seed) + 6)),
        hand_over_random_(Mix(Mix(seed) + 7)),
        policy_random_(Mix(Mix(seed) + 8)),
        bundle_random_(Mix(Mix(seed) + 9)),
        engine_random_(Mix(Mix(seed) + 10)),
        outside_random_(Mix(Mix(seed) + 12)),
        network_({.seed = Mix(seed)}),
        sabotage_(sabotage),
        hand_overs_(hand_overs) {
    const bool drawn = channel_random_.Below(2) != 0;
    channels_ = channels == OracleChannels::kBySeed ? drawn : channels == OracleChannels::kAlways;
    MakeLinks();
    PlanPairs();
    PlanInboxes();
    PlanEndpoints();
    MakeHosts();
    Wire();
    MakeFaults();
    Converse();
    Correspond();
    for (const auto& talker : talkers_) speakers_.push_back(talker.get());
    for (const auto& one : correspondents_) speakers_.push_back(one.get());
  }

  OracleResult Run() {
    OracleResult result;
    for (Speaker* speaker : speakers_) speaker->Begin();
    const TimePoint end = network_.now() + kLongest;
    bool done = false;
    if (sabotage_ == Sabotage::kStrayByte) hosts_[0]->memory().back() ^= 1;
    if (sabotage_ == Sabotage::kWrongAnswer) {
      for (Speaker* speaker : speakers_) speaker->SpoilLibrary();
    }
    if (sabotage_ == Sabotage::kNoFlush)
      for (Speaker* speaker : speakers_) speaker->HideFlushes();
    while (!done && network_.queue().fired() < kMostEvents && network_.RunOne(end)) {
      // State changes only with events; checking after every one would cost more than the events.
      if (network_.queue().fired() % 64 == 0) done = Done();
      if (hand_overs_ != OracleHandOvers::kNone && !HandOverSome(result)) return result;
    }
    done = Done();
    network_.RunFor(kAfterwards);
    result.failure = Judge(done);
    result.world = Describe();
    result.packets = network_.entered();
    result.deliveries = network_.deliveries();
    for (const Speaker* speaker : speakers_) {
      result.requests += speaker->posted();
      result.bytes += speaker->bytes();
    }
    for (const auto& one : correspondents_) result.endpoint_requests += one->posted();
    for (const auto& link : network_.links()) {
      result.lost += link->counters().lost + link->counters().tail_drops;
    }
    for (const auto& host : hosts_) {
      if (hand_overs_ == OracleHandOvers::kWorkers) result.hand_overs += host->replacements();
      result.lost += host->overflows();
      result.retransmitted += Again(*host);
      result.channel_frames += host->Count(&metrics::WorkerCounters::channel_rx_packets);
      result.engine_copies += host->Count(&metrics::WorkerCounters::memory_engine_operations);
      result.bundled += host->Count(&metrics::WorkerCounters::channel_bundled_tx_packets);
    }
    result.declined = declined_;
    result.less_order = mixed_order_;
    result.shared = sharing_;
    result.trace_hash = network_.trace_hash();
    result.virtual_seconds = static_cast<double>((network_.now() - EventQueue::kStart).ns) / 1e9;
    return result;
  }

 private:
  // Returns the number of packets sent again. On a channel, void frames belong to no queue pair.
  static uint64_t Again(const Host& host) {
    return std::max(host.Count(&metrics::WorkerCounters::retransmit_packets),
                    host.Count(&metrics::WorkerCounters::channel_resent_packets));
  }
  // Returns one of the values at random.
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[random_.Below(values.size())];
  }
  bool Sometimes(uint32_t of_100) { return random_.Below(100) < of_100; }

  void MakeLinks() {
    link_.bits_per_second = OneOf<int64_t>({1, 10, 25, 100, 400}) * 1'000'000'000;
    link_.delay = Nanoseconds(OneOf<int64_t>({100, 1000, 5000, 50'000}));
    link_.queue_bytes = OneOf<uint64_t>({20'000, 100'000, 1'000'000});
    if (Sometimes(50)) {
      link_.ecn.kind = Sometimes(50) ? EcnRule::Kind::kRed : EcnRule::Kind::kStep;
      link_.ecn.k_min = OneOf<uint64_t>({1000, 10'000});
      link_.ecn.k_max = 50'000;
      link_.ecn.p_max = 0.2;
    }
  }

  void MakeHosts() {
    HostConfig config;
    config.v6 = Sometimes(25);
    config.nic.ip_id_visible = Sometimes(70);
    config.nic.transmit_packets = OneOf<size_t>({4, 16, 128});
    config.nic.receive_packets = OneOf<size_t>({64, 4096});
    config.cpu.turn = OneOf<int64_t>({50, 100, 1000});
    config.cpu.send = config.cpu.receive = OneOf<int64_t>({0, 40, 300});
    config.congestion.kind =
        static_cast<flow::CcKind>(random_.Below(static_cast<uint64_t>(flow::CcKind::kCount)));
    config.congestion.window_bytes = OneOf<uint32_t>({8192, 65'536, 1 << 20});
    config.wrong_queue = Sometimes(20) ? 0.2 : 0;
    wrong_queue_ = config.wrong_queue;
    if (hand_overs_ == OracleHandOvers::kWorkers)
      config.congestion_policy = config.channel_policy = SomePolicy();
    config.channels = channels_;
    constexpr uint32_t kWindows[] = {16, 256, 4096};
    config.channel_window = kWindows[channel_random_.Below(std::size(kWindows))];
    config.channel_paths = order_random_.Below(2) == 0 ? 1 : 1 + order_random_.Between(1, 3);
    paths_ = config.channel_paths;
    for (size_t i = 0; i < room_.size(); ++i) {
      HostConfig own = config;
      own.workers = Sometimes(80) ? 1 : random_.Between(2, 3);
      own.memory_bytes = room_[i] + kUnused;
      // A sixth of the hosts differs from what discovery reported: it has no channels, or refuses
      // them.
      const uint64_t refuses = order_random_.Below(12);
      if (refuses == 0) own.channels = false;
      if (refuses == 1) own.channel_features = wire::kOptionChannel | wire::kOptionCcMask;
      declines_.push_back(refuses <= 1);
      // A quarter of the hosts is of a release without bundles.
      own.bundles = bundle_random_.Below(4) != 0;
      // A quarter of the hosts is untrusted.
      if (memory_random_.Below(4) == 0) {
        constexpr int64_t kLatest[] = {100, 5'000, 100'000};
        own.copier_latest = Nanoseconds(kLatest[memory_random_.Below(std::size(kLatest))]);
        own.copier_depth = memory_random_.Below(2) == 0 ? 2 : 64;
        ++untrusted_;
      }
      // A third of the others has a copy engine.
      if (own.copier_latest.ns == 0 && engine_random_.Below(3) == 0)
        own.copy_engine = engine_random_.Between(1, UINT32_MAX);
      // A third of them sends payloads without a copy.
      if (own.copier_latest.ns == 0 && outside_random_.Below(3) == 0)
        own.nic.outside_from = outside_random_.Below(2) == 0 ? 1 : 700;
      hosts_.push_back(std::make_unique<Host>(network_, static_cast<uint32_t>(i + 1), own));
      arenas_.push_back(std::make_unique<Arena>(hosts_.back()->memory()));
      used_.push_back(0);
    }
    nic_ = config.nic;
    cc_ = config.congestion;
  }

  // Rules that switch the algorithm by what a world brings; none in every second world.
  flow::CcPolicy SomePolicy() {
    flow::CcPolicy policy;
    if (policy_random_.Below(2) == 0) return policy;
    policy.interval = Microseconds(50);
    policy.dwell = Milliseconds(1);
    policy.remember = Milliseconds(2);
    policy.confirm = 1;
    constexpr flow::CcSign kSigns[] = {flow::CcSign::kUnmarkedLoss, flow::CcSign::kDelay,
                                       flow::CcSign::kAlways};
    for (const flow::CcSign sign : kSigns) {
      const auto kind = policy_random_.Below(static_cast<uint64_t>(flow::CcKind::kCount));
      policy.Add({.sign = sign,
                  .threshold = sign == flow::CcSign::kDelay ? 150u : 1u,
                  .algorithm = static_cast<flow::CcKind>(kind)});
    }
    return policy;
  }

  void Wire() {
    std::vector<Endpoint*> ends;
    for (const auto& host : hosts_) ends.push_back(host.get());
    if (ends.size() == 2 && Sometimes(60)) {
      topology_ = "pair";
      WirePair(network_, *ends[0], *ends[1], link_);
    } else if (ends.size() < 4 || Sometimes(40)) {
      topology_ = "star";
      WireStar(network_, ends, link_);
    } else if (Sometimes(50)) {
      topology_ = "dumbbell";
      WireDumbbell(network_, ends, ends.size() / 2, link_, link_);
    } else {
      topology_ = "leaf-spine";
      WireLeafSpine(network_, ends, 2, 2, link_, link_);
    }
  }

  void MakeFaults() {
    FaultProbabilities p;
    if (Sometimes(60)) p.lose = OneOf({0.001, 0.01, 0.03});
    if (Sometimes(30)) p.duplicate = OneOf({0.01, 0.1});
    if (Sometimes(30)) p.delay = OneOf({0.01, 0.1});
    p.delay_most = Microseconds(OneOf<int64_t>({2, 20, 200}));
    if (Sometimes(30)) p.corrupt = OneOf({0.001, 0.02});
    if (Sometimes(10)) p.mark = 0.1;
    if (Sometimes(10)) {
      p.to_bad = 0.005;
      p.to_good = 0.3;
    }
    faults_ = p;
    for (const auto& link : network_.links()) {
      if (Sometimes(70)) link->faults().Set(p);
    }
  }

  // Chooses the pairs and their conversations, which determines how much memory a host needs.
  void PlanPairs() {
    room_.resize(Sometimes(60) ? 2 : random_.Between(3, 6));
    pairs_.resize(random_.Between(1, 4));
    for (Pair& pair : pairs_) {
      pair.hosts[0] = random_.Below(room_.size());
      pair.hosts[1] = (pair.hosts[0] + 1 + random_.Below(room_.size() - 1)) % room_.size();
      TalkerConfig& config = pair.config;
      config.slots = OneOf<uint32_t>({2, 4, 8});
      config.max_length = OneOf<uint32_t>({64, 2000, 9000, 30'000});
      config.messages = random_.Between(4, 40);
      config.late_receives = OneOf<uint32_t>({0, 0, 50, 90});
      if (Sometimes(20)) config.writes = config.reads = 0;
      if (Sometimes(10)) config.ending = static_cast<BadRequest>(random_.Between(1, 4));
      for (const size_t host : pair.hosts) room_[host] += Talker::Room(config);
    }
  }

  // On one host in three, connections share receives; only connections that end without failure,
  // because a failed queue pair keeps its receives until it is destroyed.
  void PlanInboxes() {
    inboxes_.resize(room_.size());
    inbox_plans_.resize(room_.size());
    for (size_t host = 0; host < room_.size(); ++host) {
      if (shared_random_.Below(3) != 0) continue;
      SharedInbox::Config& plan = inbox_plans_[host];
      plan.receives = 4u << shared_random_.Below(4);
      plan.payload_stride = shared_random_.Below(2) == 0 ? 0 : 256;
      for (Pair& pair : pairs_) {
        for (size_t side = 0; side < 2; ++side) {
          if (pair.hosts[side] != host || pair.config.ending != BadRequest::kNone) continue;
          if (shared_random_.Below(3) == 0) continue;
          pair.shares[side] = true;
          plan.max_length = std::max(plan.max_length, pair.config.max_length);
        }
      }
      if (plan.max_length != 0) room_[host] += SharedInbox::Room(plan);
    }
  }
  void MakeInboxes() {
    for (size_t host = 0; host < room_.size(); ++host) {
      const SharedInbox::Config& plan = inbox_plans_[host];
      if (plan.max_length == 0) continue;
      inboxes_[host] = std::make_unique<SharedInbox>(*hosts_[host], *arenas_[host], used_[host],
                                                     plan, shared_random_.Fork());
      used_[host] += SharedInbox::Room(plan);
    }
  }

  // Two of three worlds with channels have endpoints on some hosts.
  void PlanEndpoints() {
    if (!channels_ || endpoint_random_.Below(3) == 0) return;
    endpoint_hosts_.resize(endpoint_random_.Between(2, 5));
    endpoint_plan_.slots = 2u << endpoint_random_.Below(3);
    constexpr uint32_t kLengths[] = {64, 2000, 9000};
    endpoint_plan_.max_length = kLengths[endpoint_random_.Below(std::size(kLengths))];
    endpoint_plan_.messages = endpoint_random_.Between(4, 30);
    constexpr uint32_t kLate[] = {0, 0, 50, 90};
    endpoint_plan_.late_receives = kLate[endpoint_random_.Below(std::size(kLate))];
    for (size_t& host : endpoint_hosts_) {
      host = endpoint_random_.Below(room_.size());
      room_[host] += Correspondent::Room(endpoint_plan_, endpoint_hosts_.size());
    }
  }
  // A third belongs to a pool with a window.
  uint32_t PoolsWindow(Random& random) {
    constexpr uint32_t kPoolWindows[] = {0, 0, 0, 0, 4096, 16'384};
    const uint32_t window = kPoolWindows[random.Below(std::size(kPoolWindows))];
    bounded_ += window != 0 ? 1 : 0;
    return window;
  }
  // Connects the endpoints of hosts with channels, each to those of other hosts.
  void Correspond() {
    struct Made {
      size_t host;
      RingEnd* end;
      Correspondent* who;
    };
    std::vector<Made> all;
    for (uint32_t i = 0; i < endpoint_hosts_.size(); ++i) {
      const size_t host = endpoint_hosts_[i];
      if (declines_[host]) continue;
      RingOptions ring;
      ring.type = verbs::QpType::kEndpoint;
      ring.qpn = static_cast<uint32_t>(endpoint_random_.Below(64) << 18 | (kFirstEndpoint + i));
      ring.handle = kFirstEndpoint + i;
      ring.sq_entries = ring.rq_entries = endpoint_plan_.slots;
      ring.cq_entries = 64;
      ring.rq_payload_stride = endpoint_random_.Below(2) == 0 ? 0 : 256;
      ring.service_mode = endpoint_random_.Below(2) == 0 ? verbs::ServiceMode::kByInitiator
                                                         : verbs::ServiceMode::kUnordered;
      ring.any_completion_order = endpoint_random_.Below(2) == 0;
      ring.give_up_ms = 60'000;
      ring.window_bytes = PoolsWindow(endpoint_window_random_);
      RingEnd& end = hosts_[host]->AddQp(ring);
      hosts_[host]->ReadyEndpoint(end, kEndpointKey + i);
      correspondents_.push_back(std::make_unique<Correspondent>(
          *hosts_[host], end, *arenas_[host], used_[host], i, endpoint_hosts_.size(),
          endpoint_plan_, endpoint_random_.Fork()));
      used_[host] += Correspondent::Room(endpoint_plan_, endpoint_hosts_.size());
      all.push_back({host, &end, correspondents_.back().get()});
    }
    // Endpoints of one program use the same handles for the others.
    std::set<std::pair<size_t, uint32_t>> named;
    for (const Made& own : all) {
      for (const Made& other : all) {
        if (own.host == other.host) continue;
        const uint32_t handle = other.end->options().handle;
        if (named.emplace(own.host, handle).second) {
          hosts_[own.host]->AddPeer(handle, *hosts_[other.host], *other.end,
                                    kEndpointKey + handle - kFirstEndpoint);
        }
        own.who->Meet(*other.who, handle);
      }
    }
  }

  void Converse() {
    MakeInboxes();
    for (uint32_t number = 0; number < pairs_.size(); ++number) {
      const Pair& pair = pairs_[number];
      const uint32_t payload_in_ring = Sometimes(50) ? 256 : 0;
      const uint32_t less_order = order_random_.Below(3) == 0 ? 60 : 0;
      mixed_order_ += less_order != 0 ? 1 : 0;
      RingEnd* rings[2] = {};
      Talker* talkers[2] = {};
      for (uint32_t side = 0; side < 2; ++side) {
        RingOptions options;
        uint64_t bucket = random_.Below(64);
        SharedInbox* const inbox = InboxOf(pair, side);
        // Queue pairs that share receives must be on one worker; multiples of 6 select worker 0 for
        // 1, 2 and 3 workers.
        if (inbox != nullptr) bucket -= bucket % 6;
        options.qpn = static_cast<uint32_t>(bucket << 18 | (100 + number * 2 + side));
        options.shared = inbox == nullptr ? nullptr : &inbox->end();
        sharing_ += inbox != nullptr ? 1 : 0;
        options.handle = number * 2 + side + 1;
        options.sq_entries = options.rq_entries = pair.config.slots;
        options.cq_entries = 64;
        options.max_sge = 3;
        options.payload_stride = 256;
        options.rq_payload_stride = payload_in_ring;
        if (less_order != 0) {
          constexpr verbs::ServiceMode kModes[] = {verbs::ServiceMode::kByTarget,
                                                   verbs::ServiceMode::kByInitiator,
                                                   verbs::ServiceMode::kByLowerLayer};
          options.service_mode = kModes[order_random_.Below(std::size(kModes))];
        }
        options.window_bytes = PoolsWindow(window_random_);
        rings[side] = &hosts_[pair.hosts[side]]->AddQp(options);
      }
      ConnectionOptions options;
      options.path_mtu = static_cast<uint8_t>(random_.Between(1, 5));
      options.rd_atomic = static_cast<uint8_t>(random_.Between(1, 8));
      options.min_rnr_timer = static_cast<uint8_t>(random_.Between(1, 6));
      // Native connections between the same hosts must not be affected.
      options.channel = channels_ && channel_random_.Below(5) != 0;
      const bool declined =
          options.channel && (declines_[pair.hosts[0]] || declines_[pair.hosts[1]]);
      on_channels_ += options.channel && !declined ? 1 : 0;
      declined_ += declined ? 1 : 0;
      Host::Connect(*hosts_[pair.hosts[0]], *rings[0], *hosts_[pair.hosts[1]], *rings[1], options);
      for (uint32_t side = 0; side < 2; ++side) {
        TalkerConfig own = pair.config;
        own.channel = options.channel && !declined;
        own.less_order = less_order;
        own.order_seed = order_random_.Bits();
        if (side == 1) own.ending = BadRequest::kNone;
        const size_t host = pair.hosts[side];
        talkers[side] = talkers_
                            .emplace_back(std::make_unique<Talker>(
                                *hosts_[host], *rings[side], *arenas_[host], used_[host], number,
                                side, own, InboxOf(pair, side), random_.Fork()))
                            .get();
        used_[host] += Talker::Room(own);
      }
      talkers[0]->Meet(*talkers[1]);
      talkers[1]->Meet(*talkers[0]);
    }
  }

  // Hands over a random host after a random number of events. Returns false if that failed.
  bool HandOverSome(OracleResult& result) {
    if (network_.queue().fired() < next_hand_over_) return true;
    const uint64_t most =
        hand_overs_ == OracleHandOvers::kWorkers ? kEventsBetweenReplacements : kEventsBetween;
    next_hand_over_ = network_.queue().fired() + 1 + hand_over_random_.Below(most);
    const size_t host = hand_over_random_.Below(hosts_.size());
    if (hand_overs_ == OracleHandOvers::kWorkers) {
      hosts_[host]->ReplaceWorkers();
      for (const auto& each : hosts_) {
        if (each->replacement_failure().empty()) continue;
        result.failure = "replacement of workers: " + each->replacement_failure();
        return false;
      }
      return true;
    }
    const Host::HandedOver done = hosts_[host]->HandOver();
    result.hand_overs += done.objects != 0 ? 1 : 0;
    result.handed_over += done.objects;
    result.not_handed_over += done.left;
    if (done.failure.empty()) return true;
    result.failure = Format("hand-over of host %zu: %s", host + 1, done.failure.c_str());
    return false;
  }

  // The first failure ends a world.
  bool Done() const {
    const auto failed = [](const Speaker* speaker) { return !speaker->failure().empty(); };
    const auto done = [](const Speaker* speaker) { return speaker->done(); };
    return std::any_of(speakers_.begin(), speakers_.end(), failed) ||
           std::all_of(speakers_.begin(), speakers_.end(), done);
  }

  std::string Judge(bool done) {
    bool anything_lost = false;
    for (const auto& link : network_.links()) {
      const LinkCounters& c = link->counters();
      anything_lost |= c.lost + c.tail_drops + c.corrupted + c.delayed > 0;
    }
    // Responses may also be dropped without loss: when the requester has gone back, or when the
    // refusal of a later request overtakes them between workers. Natively, the refusal acknowledges
    // earlier requests, and nobody repeats them any more.
    for (const auto& host : hosts_) {
      anything_lost |= host->overflows() > 0 || Again(*host) > 0 ||
                       host->Count(&metrics::WorkerCounters::handoff_rx_packets) > 0;
    }
    for (const Speaker* speaker : speakers_)
      if (!speaker->failure().empty()) return speaker->failure();
    for (const auto& talker : talkers_) {
      // Between gateways no response is lost permanently.
      if (talker->blamed_for_another() && (!anything_lost || talker->config().channel)) {
        return "a request failed for another one, and no answer was lost";
      }
    }
    if (!done) {
      std::string text =
          "not done after " + std::to_string(network_.queue().fired()) + " events and " +
          std::to_string((network_.now() - EventQueue::kStart).ns / 1'000'000) + " ms";
      for (const Speaker* speaker : speakers_)
        if (!speaker->done()) text += "; " + speaker->Describe();
      return text;
    }
    for (Speaker* speaker : speakers_) speaker->Finish();
    for (size_t i = 0; i < hosts_.size(); ++i) {
      const uint64_t wrong = arenas_[i]->FirstDifference();
      if (wrong != hosts_[i]->memory().size()) {
        return "host " + std::to_string(i + 1) + ": byte " + std::to_string(wrong) +
               " of its memory changed, and nobody may have";
      }
      for (const worker::WorkerMessage& notice : hosts_[i]->notices) {
        if (std::holds_alternative<worker::SessionStopped>(notice.body)) {
          return std::string("session stopped: ") +
                 std::get<worker::SessionStopped>(notice.body).reason;
        }
      }
    }
    return {};
  }

  std::string Describe() const {
    return Format(
        "%s of %zu, %lld Gbit/s, %lld ns, queue %llu, nic %zu/%zu, ip id %s, window %u, "
        "cc %s, lose %g duplicate %g delay %g corrupt %g bursts %g, wrong queue %g, %zu "
        "ends, %zu pairs on "
        "channels over %u paths, %zu that went without, %zu with less order, %zu hosts untrusted, "
        "%zu ends bounded, %zu ends share receives, %zu endpoints",
        topology_, hosts_.size(), static_cast<long long>(link_.bits_per_second / 1'000'000'000),
        static_cast<long long>(link_.delay.ns), Wide(link_.queue_bytes), nic_.transmit_packets,
        nic_.receive_packets, nic_.ip_id_visible ? "visible" : "hidden", cc_.window_bytes,
        flow::AlgorithmOf(cc_.kind).name, faults_.lose, faults_.duplicate, faults_.delay,
        faults_.corrupt, faults_.to_bad, wrong_queue_, talkers_.size(), on_channels_, paths_,
        declined_, mixed_order_, untrusted_, bounded_, sharing_, correspondents_.size());
  }

  struct Pair {
    size_t hosts[2] = {};
    bool shares[2] = {};  // shares receives with others of its host
    TalkerConfig config;
  };
  SharedInbox* InboxOf(const Pair& pair, size_t side) const {
    return pair.shares[side] ? inboxes_[pair.hosts[side]].get() : nullptr;
  }
  static constexpr uint32_t kEndpointKey = 0x4711;
  static constexpr uint32_t kFirstEndpoint = 1000;  // handle and number
  // Memory beyond what any speaker uses.
  static constexpr size_t kUnused = 16 << 10;

  Random random_;
  Random channel_random_;
  Random order_random_;
  Random memory_random_;
  Random shared_random_;
  Random endpoint_random_;
  Random window_random_;
  Random endpoint_window_random_;
  Random hand_over_random_;
  Random policy_random_;
  Random bundle_random_;
  Random engine_random_;
  Random outside_random_;
  Network network_;
  const Sabotage sabotage_;
  const OracleHandOvers hand_overs_;
  uint64_t next_hand_over_ = 0;  // in events
  bool channels_ = false;
  size_t on_channels_ = 0;
  size_t declined_ = 0;
  size_t untrusted_ = 0;  // number of hosts
  size_t bounded_ = 0;    // number limited by a window of their pool
  size_t mixed_order_ = 0;
  uint32_t paths_ = 1;
  std::vector<bool> declines_;  // by host
  double wrong_queue_ = 0;
  LinkConfig link_;
  NicConfig nic_;
  flow::CcConfig cc_;
  FaultProbabilities faults_;
  const char* topology_ = "";
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Pair> pairs_;
  std::vector<uint64_t> room_;  // bytes, by host
  std::vector<uint64_t> used_;
  std::vector<SharedInbox::Config> inbox_plans_;  // by host; max_length 0: none
  std::vector<std::unique_ptr<SharedInbox>> inboxes_;
  size_t sharing_ = 0;  // ends
  SpeakerConfig endpoint_plan_;
  std::vector<size_t> endpoint_hosts_;
  std::vector<std::unique_ptr<Talker>> talkers_;
  std::vector<std::unique_ptr<Correspondent>> correspondents_;
  std::vector<Speaker*> speakers_;  // all of them
};

}  // namespace

OracleResult RunOracle(uint64_t seed, Sabotage sabotage, OracleChannels channels,
                       OracleHandOvers hand_overs) {
  return World(seed, sabotage, channels, hand_overs).Run();
}

}  // namespace rocegw::sim
