// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/replica.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "examples/kv_store/rdma_link.h"

namespace kv {
namespace {

constexpr Milliseconds kIdleLimit(10'000);
constexpr Milliseconds kSendLimit(3000);
constexpr Milliseconds kListenAgainAfter(500);
// A client's request waits so long for a majority.
constexpr Milliseconds kMajorityLimit(2000);
constexpr Milliseconds kMajorityAgainAfter(20);
// Files in the replica's folder that open and close its paths while it runs.
constexpr const char* kRdmaPath = "rdma-path";  // RDMA listens
constexpr const char* kRdmaOnly = "rdma-only";  // TCP carries greetings only

uint64_t NewIncarnation() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

Replica::Replica(const Settings& settings)
    : settings_(settings),
      store_(settings.folder, settings.sync),
      incarnation_(NewIncarnation()),
      offered_(settings.transport) {
  for (const Place& place : settings.others)
    peers_.push_back(std::make_unique<Peer>(place, settings.fallback, store_));
}

void Replica::Start() {
  for (const auto& peer : peers_) peer->Start();
  std::thread([this] {
    if (!ServeTcp(settings_.own.address, settings_.own.port,
                  [this](auto link) { TakeLink(std::move(link)); })) {
      std::fprintf(stderr, "kv_store: cannot listen at %s %u\n", settings_.own.address.c_str(),
                   unsigned{settings_.own.port});
      std::_Exit(1);
    }
  }).detach();
  std::thread(&Replica::ServeRdmaLinks, this).detach();
}

bool Replica::HasFile(const char* name) const {
  return ::access((settings_.folder + "/" + name).c_str(), F_OK) == 0;
}

void Replica::ServeRdmaLinks() {
  while (true) {
    if (HasFile(kRdmaPath)) {
      ServeRdma(
          settings_.own.address, settings_.rdma_port, [this] { rdma_listens_ = true; },
          [this] { return !HasFile(kRdmaPath); }, [this](auto link) { TakeLink(std::move(link)); });
      rdma_listens_ = false;
    }
    std::this_thread::sleep_for(kListenAgainAfter);
  }
}

void Replica::TakeLink(std::unique_ptr<Link> link) {
  if (links_.fetch_add(1) < kMostLinks) {
    try {
      std::thread([this, link = std::shared_ptr<Link>(std::move(link))] {
        Serve(*link);
        links_.fetch_sub(1);
      }).detach();
      return;
    } catch (const std::system_error&) {
      // No thread: the link is closed.
    }
  }
  links_.fetch_sub(1);
}

void Replica::Serve(Link& link) {
  std::string bytes;
  bool is_data = false;
  bool fell_back = false;
  while (link.Receive(bytes, kIdleLimit)) {
    const auto request = Decode(bytes);
    if (!request.has_value()) break;
    const bool was_data = is_data;
    Message reply = Answer(*request, link.transport(), is_data, fell_back);
    auto& count = data_links_.at(static_cast<size_t>(link.transport()));
    if (is_data && !was_data) count.fetch_add(1);
    if (!link.Send(Encode(reply), kSendLimit)) break;
  }
  if (is_data) data_links_.at(static_cast<size_t>(link.transport())).fetch_sub(1);
}

Message Replica::Answer(const Message& request, Transport over, bool& is_data, bool& fell_back) {
  Message reply;
  switch (request.op) {
    case Op::kHello:
      reply = Greet(request.value, fell_back);
      break;
    case Op::kStatus:
      reply.value = Status();
      break;
    case Op::kPing:
      reply.version = incarnation_;
      break;
    case Op::kGet:
      reply = Get(request.key);
      break;
    case Op::kPut:
      reply = Put(request.key, request.value);
      break;
    case Op::kRead:
      if (const auto value = store_.Read(request.key)) {
        reply.version = value->version;
        reply.value = value->text;
      } else {
        reply.outcome = Outcome::kAbsent;
      }
      break;
    case Op::kWrite:
      if (!store_.Write(request.key, {request.version, request.value}))
        reply.outcome = Outcome::kRefused;
      break;
  }
  reply.op = request.op;
  const bool is_question = request.op == Op::kHello || request.op == Op::kStatus;
  is_data = is_data || !is_question;
  reply.moved = !is_question && !fell_back && over != offered_;
  return reply;
}

Message Replica::Greet(const std::string& wanted, bool& fell_back) const {
  const Transport offered = offered_;
  const bool rdma = wanted == "rdma" || (wanted.empty() && offered == Transport::kRdma);
  if (rdma && (rdma_listens_ || wanted.empty()))
    return {.value = "rdma " + std::to_string(settings_.rdma_port)};
  if (rdma || HasFile(kRdmaOnly)) return {.outcome = Outcome::kRefused};
  fell_back = offered == Transport::kRdma;
  return {.value = "tcp"};
}

bool Replica::Newest(const std::string& key, Value& newest, bool& agreed) {
  newest = store_.Read(key).value_or(Value{});
  agreed = true;
  size_t answers = 1;
  for (const auto& peer : peers_) {
    if (answers == majority()) break;
    Message reply;
    if (!peer->Ask({.op = Op::kRead, .key = key}, reply)) continue;
    if (reply.outcome != Outcome::kDone && reply.outcome != Outcome::kAbsent) continue;
    ++answers;
    if (reply.version != newest.version) agreed = false;
    if (reply.version > newest.version) newest = {reply.version, reply.value};
  }
  return answers >= majority();
}

bool Replica::Spread(const std::string& key, const Value& value) {
  if (!store_.Write(key, value)) return false;
  size_t stored = 1;
  for (const auto& peer : peers_) stored += peer->Write(key, value) ? 1 : 0;
  return stored >= majority();
}

Message Replica::Get(const std::string& key) {
  const auto end = Clock::now() + kMajorityLimit;
  do {
    Value newest;
    bool agreed = false;
    // A value that only a minority may have is stored at a majority before it is returned: no later
    // get returns an older one.
    if (Newest(key, newest, agreed) && (agreed || Spread(key, newest))) {
      if (newest.version == 0) return {.outcome = Outcome::kAbsent};
      return {.version = newest.version, .value = newest.text};
    }
    std::this_thread::sleep_for(kMajorityAgainAfter);
  } while (Clock::now() < end);
  return {.outcome = Outcome::kNoMajority};
}

Message Replica::Put(const std::string& key, const std::string& text) {
  const auto end = Clock::now() + kMajorityLimit;
  Value value = {.text = text};
  do {
    Value newest;
    bool agreed = false;
    if (value.version == 0 && Newest(key, newest, agreed)) {
      const std::lock_guard lock(count_mutex_);
      last_count_ = std::max({last_count_, CountOf(newest.version), store_.highest_count()}) + 1;
      value.version = MakeVersion(last_count_, settings_.number);
    }
    if (value.version != 0 && Spread(key, value)) return {.version = value.version};
    std::this_thread::sleep_for(kMajorityAgainAfter);
  } while (Clock::now() < end);
  return {.outcome = Outcome::kNoMajority};
}

std::string Replica::Status() const {
  std::ostringstream text;
  text << "name " << settings_.own.name << "\ntransport " << WordOf(offered_) << "\nrdma "
       << (rdma_listens_ ? "listens" : "off") << "\nclients tcp " << data_links_[0] << " rdma "
       << data_links_[1] << "\nkeys " << store_.size() << "\njournal " << store_.journal_bytes()
       << "\n";
  for (const auto& peer : peers_) {
    const Peer::State state = peer->state();
    text << "peer " << peer->name() << " " << state.transport
         << (state.fell_back ? " fell-back" : "") << " owed " << state.owed << "\n";
  }
  return text.str();
}

}  // namespace kv
