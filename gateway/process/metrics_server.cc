// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/metrics_server.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace rocegw::process {
namespace {

struct Page {
  int code = 200;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

const char* Reason(int code) {
  return code == 200 ? "OK" : code == 404 ? "Not Found" : "Service Unavailable";
}

class PageHandler : public CivetHandler {
 public:
  explicit PageHandler(std::function<Page()> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer*, mg_connection* connection) override {
    Send(connection, true);
    return true;
  }
  bool handleHead(CivetServer*, mg_connection* connection) override {
    Send(connection, false);
    return true;
  }

 private:
  void Send(mg_connection* connection, bool with_body) const {
    const Page page = make_();
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
              page.code, Reason(page.code), page.type, page.body.size());
    if (with_body) mg_write(connection, page.body.data(), page.body.size());
  }

  std::function<Page()> make_;
};

// Opens and closes a connection to a local listener ("127.0.0.1", "[::1]").
void Knock(const std::string& host, int port) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (host.starts_with('[')) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr);
    length = sizeof *v6;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
    length = sizeof *v4;
  }
  const int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  (void)connect(fd, reinterpret_cast<const sockaddr*>(&storage), length);
  close(fd);
}

constexpr std::chrono::milliseconds kKnockInterval(5);

}  // namespace

struct MetricsServer::Parts {
  Parts(const MetricsSource& metrics, const Readiness& readiness)
      : metrics_page([&metrics]() -> Page {
          const auto families = metrics.Collect();
          if (families.empty()) return {503, "the daemon does not answer\n"};
          return {200, prometheus::TextSerializer().Serialize(families),
                  "text/plain; version=0.0.4; charset=utf-8"};
        }),
        live_page([&metrics]() -> Page {
          if (metrics.Alive()) return {200, "ok\n"};
          return {503, "the daemon does not answer\n"};
        }),
        ready_page([&readiness]() -> Page {
          const std::string reason = readiness.reason();
          return reason.empty() ? Page{200, "ok\n"} : Page{503, reason + "\n"};
        }),
        other_page([]() -> Page {
          return {404, "there are /metrics, /livez and /readyz\n"};
        }) {}
  PageHandler metrics_page;
  PageHandler live_page;
  PageHandler ready_page;
  PageHandler other_page;
  std::string host;
  std::unique_ptr<CivetServer> server;
};

MetricsServer::MetricsServer(const MetricsSource& metrics, const Readiness& readiness)
    : parts_(std::make_unique<Parts>(metrics, readiness)) {}

MetricsServer::~MetricsServer() { Stop(); }

Status MetricsServer::Start(const std::string& address) {
  const std::vector<std::string> options = {
      "listening_ports",          address, "num_threads",        "2",
      "enable_directory_listing", "no",    "request_timeout_ms", "10000"};
  try {
    parts_->server = std::make_unique<CivetServer>(options);
  } catch (const CivetException&) {
    return {EADDRINUSE,
            "metrics: cannot listen on " + address +
                "; another process may have the port or the address may not exist here: "
                "set metrics.address, or \"\" for none"};
  }
  parts_->host = address.substr(0, address.rfind(':'));
  parts_->server->addHandler("/", parts_->other_page);
  parts_->server->addHandler("/metrics", parts_->metrics_page);
  parts_->server->addHandler("/livez", parts_->live_page);
  parts_->server->addHandler("/readyz", parts_->ready_page);
  return OkStatus();
}

void MetricsServer::Stop() {
  if (parts_->server == nullptr) return;
  // The web server looks for a stop only when its two-second wait for a connection ends, so give it
  // some.
  std::atomic<bool> stopped{false};
  std::thread knocker([this, &stopped, at = port()] {
    while (!stopped.load()) {
      Knock(parts_->host, at);
      std::this_thread::sleep_for(kKnockInterval);
    }
  });
  parts_->server.reset();
  stopped.store(true);
  knocker.join();
}

int MetricsServer::port() const {
  if (parts_->server == nullptr) return 0;
  const std::vector<int> ports = parts_->server->getListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace rocegw::process
