// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/metrics_server.h"

#include <CivetServer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

namespace rocegw::service {
namespace {

struct Page {
  int code = 200;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

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
              page.code, page.code == 200 ? "OK" : "Service Unavailable", page.type,
              page.body.size());
    if (with_body) mg_write(connection, page.body.data(), page.body.size());
  }

  std::function<Page()> make_;
};

}  // namespace

struct MetricsServer::Parts {
  Parts(const GatewayMetrics& metrics, const Readiness& readiness)
      : metrics_page([&metrics]() -> Page {
          const auto families = metrics.Collect();
          if (families.empty()) return {503, "the gateway's control thread does not answer\n"};
          return {200, prometheus::TextSerializer().Serialize(families),
                  "text/plain; version=0.0.4; charset=utf-8"};
        }),
        live_page([&metrics]() -> Page {
          if (metrics.Alive()) return {200, "ok\n"};
          return {503, "the gateway's control thread does not answer\n"};
        }),
        ready_page([&readiness]() -> Page {
          const std::string reason = readiness.reason();
          return reason.empty() ? Page{200, "ok\n"} : Page{503, reason + "\n"};
        }) {}
  PageHandler metrics_page;
  PageHandler live_page;
  PageHandler ready_page;
  std::unique_ptr<CivetServer> server;
};

MetricsServer::MetricsServer(const GatewayMetrics& metrics, const Readiness& readiness)
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
  parts_->server->addHandler("/metrics", parts_->metrics_page);
  parts_->server->addHandler("/livez", parts_->live_page);
  parts_->server->addHandler("/readyz", parts_->ready_page);
  return OkStatus();
}

void MetricsServer::Stop() { parts_->server.reset(); }

int MetricsServer::port() const {
  if (parts_->server == nullptr) return 0;
  const std::vector<int> ports = parts_->server->getListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace rocegw::service
