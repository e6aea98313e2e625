// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/http/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <prometheus/text_serializer.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "gateway/base/port_holders.h"
#include "gateway/base/timing/monotonic_clock.h"

namespace rocegw::process {
namespace {

// So many that a program which opens one after the other has not displaced a connection before its
// request arrives.
constexpr size_t kConnections = 256;
constexpr size_t kOfOneSource = 128;
constexpr int kAcceptsPerRound = 16;
constexpr int kBacklog = 256;
constexpr Duration kAliveWithin = Seconds(2);
constexpr Duration kMetricsWithin = Seconds(10);
constexpr Duration kDescriptorsGone = Milliseconds(100);
constexpr char kSilent[] = "the daemon does not answer\n";

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

bool ReadAddress(const std::string& text, Address& address) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = text.substr(0, colon);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
    return inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1;
  }
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  address.length = sizeof *v4;
  return inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1;
}

// Describes the program that has the port of the address.
std::string HolderOf(const std::string& text) {
  Address address;
  if (!ReadAddress(text, address)) return "";
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  return PortHolderText(PortKind::kTcp, ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
}

HttpConnection::Source SourceOf(const sockaddr_storage& peer) {
  HttpConnection::Source source{};
  if (peer.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&peer);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    std::memcpy(source.data(), &v6->sin6_addr, mapped ? 16 : 8);
  } else {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&peer);
    std::memcpy(source.data() + 12, &v4->sin_addr, 4);
    source[10] = source[11] = 0xff;  // as a mapped address
  }
  return source;
}

// Returns the order in which connections are closed when there are too many.
int Priority(const HttpConnection& connection, const PageMaker* metrics) {
  switch (connection.state()) {
    case HttpConnection::State::kClosed:
    case HttpConnection::State::kClosing:
      return 0;
    case HttpConnection::State::kReading:
      return 1;
    default:
      return connection.maker == metrics ? 2 : 3;
  }
}

}  // namespace

MetricsServer::MetricsServer(const MetricsSource& metrics, const Readiness& readiness,
                             const Watchdog* watchdog)
    : metrics_(metrics), readiness_(readiness), watchdog_(watchdog) {}

MetricsServer::~MetricsServer() { Stop(); }

// Returns an invalid descriptor on failure.
UniqueFd MetricsServer::Listen() const {
  Address address;
  if (!ReadAddress(address_, address)) return {};
  UniqueFd listener(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  (void)::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address.storage);
  if (!listener.valid() || ::bind(listener.get(), name, address.length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0)
    return {};
  return listener;
}

void MetricsServer::SetAccepting(bool accepting) {
  accepting_.store(accepting);
  if (wake_.valid()) Wake();
}

void MetricsServer::Offer(OfferedFds& fds) const {
  if (listener_.valid()) fds.push_back({FdKind::kMetricsListener, address_, listener_.get()});
}

Status MetricsServer::Start(const std::string& text, InheritedFds* inherited) {
  address_ = text;
  UniqueFd listener;
  int error = 0;
  if (inherited != nullptr) listener = inherited->Take(FdKind::kMetricsListener, text);
  if (!listener.valid()) {
    listener = Listen();
    error = errno;
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::string holder =
      !listener.valid() && error == EADDRINUSE ? HolderOf(text) : std::string();
  if (!listener.valid() || !wake_.valid() ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return {EADDRINUSE, "metrics: cannot listen on " + text + "; " +
                            (holder.empty() ? "another process may have the port or the address "
                                              "may not exist here:"
                                            : holder + " has the port: stop it,") +
                            " set metrics.address, or \"\" for none"};
  }
  listener_ = std::move(listener);
  port_ =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  stop_.store(false);
  metrics_page_ = std::make_unique<PageMaker>(
      [this]() -> Page {
        const auto families = metrics_.Collect();
        if (families.empty()) return {503, kSilent};
        return {200, prometheus::TextSerializer().Serialize(families),
                "text/plain; version=0.0.4; charset=utf-8"};
      },
      [this] { Wake(); });
  live_page_ = std::make_unique<PageMaker>(
      [this]() -> Page {
        if (metrics_.Alive()) return {200, "ok\n"};
        return {503, kSilent};
      },
      [this] { Wake(); });
  thread_ = std::thread(&MetricsServer::Run, this);
  ::pthread_setname_np(thread_.native_handle(), "rocegw-metrics");
  return OkStatus();
}

void MetricsServer::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  Wake();
  thread_.join();
  metrics_page_.reset();
  live_page_.reset();
  connections_.clear();
  listener_.Reset();
  port_ = 0;
}

void MetricsServer::Wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

int MetricsServer::WaitMilliseconds(TimePoint now) const {
  TimePoint next = accept_again_ > now ? accept_again_ : now + Seconds(3600);
  for (const auto& connection : connections_) next = std::min(next, connection->deadline());
  return static_cast<int>(std::max<int64_t>(0, (next - now).ns / 1000000 + 1));
}

void MetricsServer::Run() {
  std::vector<pollfd> polled;
  while (!stop_.load()) {
    TimePoint now = MonotonicNow();
    polled.clear();
    polled.push_back({wake_.get(), POLLIN, 0});
    const bool accepts = accepting_.load() && now >= accept_again_;
    polled.push_back({accepts ? listener_.get() : -1, POLLIN, 0});
    for (const auto& connection : connections_)
      polled.push_back({connection->fd(), connection->events(), 0});
    (void)::poll(polled.data(), polled.size(), WaitMilliseconds(now));
    now = MonotonicNow();
    if (polled[0].revents != 0) {
      uint64_t value = 0;
      (void)!::read(wake_.get(), &value, sizeof value);
    }
    for (size_t i = 0; i < connections_.size(); ++i) {
      HttpConnection& connection = *connections_[i];
      if (polled[i + 2].revents != 0) connection.OnReady(now);
      if (connection.state() == HttpConnection::State::kAsked && connection.page_number == 0)
        Answer(connection, now);
    }
    AnswerReadyPages(now);
    for (const auto& connection : connections_) {
      if (now >= connection->deadline()) OnDeadline(*connection, now);
    }
    std::erase_if(connections_, [now](const auto& connection) {
      return connection->state() == HttpConnection::State::kClosed || now >= connection->deadline();
    });
    // SetAccepting may have been called during poll().
    if (polled[1].revents != 0 && accepting_.load()) Accept(now);
  }
}

void MetricsServer::Accept(TimePoint now) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    UniqueFd socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      const HttpConnection::Source source = SourceOf(peer);
      MakeRoom(source);
      connections_.push_back(std::make_unique<HttpConnection>(std::move(socket), source, now));
      // Most requests have arrived already.
      connections_.back()->OnReady(now);
      if (connections_.back()->state() == HttpConnection::State::kAsked)
        Answer(*connections_.back(), now);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // The pending connection would end each poll at once.
    if (errno != EAGAIN) accept_again_ = now + kDescriptorsGone;
    return;
  }
}

void MetricsServer::MakeRoom(const HttpConnection::Source& source) {
  const auto close_one = [this](const auto& counts) {
    auto chosen = connections_.end();
    for (auto it = connections_.begin(); it != connections_.end(); ++it) {
      if (!counts(**it)) continue;
      if (chosen == connections_.end() ||
          Priority(**it, metrics_page_.get()) < Priority(**chosen, metrics_page_.get())) {
        chosen = it;
      }
    }
    if (chosen != connections_.end()) connections_.erase(chosen);
  };
  const auto of_source = [&source](const HttpConnection& c) { return c.source() == source; };
  const auto any = [](const HttpConnection&) { return true; };
  if (std::ranges::count_if(connections_, [&](const auto& c) { return of_source(*c); }) >=
      static_cast<std::ptrdiff_t>(kOfOneSource)) {
    close_one(of_source);
  }
  if (connections_.size() >= kConnections) close_one(any);
}

void MetricsServer::Answer(HttpConnection& connection, TimePoint now) {
  const auto respond = [&](Page page) {
    connection.Respond(std::make_shared<const Page>(std::move(page)), now);
  };
  const std::string& path = connection.path();
  if (path == "/readyz") {
    const std::string reason = readiness_.reason();
    return respond(reason.empty() ? Page{200, "ok\n"} : Page{503, reason + "\n"});
  }
  if (path == "/livez") {
    const std::string stuck = watchdog_ == nullptr ? "" : watchdog_->Stuck();
    if (!stuck.empty()) return respond({503, stuck + "\n"});
    connection.maker = live_page_.get();
    connection.AwaitUntil(now + kAliveWithin);
  } else if (path == "/metrics") {
    connection.maker = metrics_page_.get();
    connection.AwaitUntil(now + kMetricsWithin);
  } else {
    return respond({404, "there are /metrics, /livez and /readyz\n"});
  }
  connection.page_number = connection.maker->Order();
}

void MetricsServer::AnswerReadyPages(TimePoint now) {
  for (const auto& connection : connections_) {
    if (connection->state() != HttpConnection::State::kAsked) continue;
    if (auto page = connection->maker->Find(connection->page_number))
      connection->Respond(std::move(page), now);
  }
}

void MetricsServer::OnDeadline(HttpConnection& connection, TimePoint now) {
  // The page did not come in time; every other state has ended.
  if (connection.state() == HttpConnection::State::kAsked)
    connection.Respond(std::make_shared<const Page>(Page{503, kSilent}), now);
}

}  // namespace rocegw::process
