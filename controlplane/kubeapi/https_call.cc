// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/https_call.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "controlplane/kubeapi/http_connection.h"
#include "gateway/base/freed_by.h"

namespace rocegw::kubeapi {
namespace {

using Context = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, FreedBy<SSL_free>>;

bool IsAddress(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// Returns OpenSSL's text of the last failure on this thread.
Status TlsError(SSL* session) {
  const long verified = SSL_get_verify_result(session);
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (verified != X509_V_OK) {
    return {EACCES, std::string("the server's certificate is not good: ") +
                        X509_verify_cert_error_string(verified)};
  }
  char text[256] = "the connection ended";
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  return {EPROTO, std::string("TLS: ") + text};
}

// Repeats step(session) while it waits for the network; returns its result, > 0, or 0 at the end of
// the stream.
template <typename Step>
StatusOr<size_t> Repeat(SSL* session, int fd, const Patience& patience, const Step& step) {
  for (;;) {
    ERR_clear_error();
    const int done = step(session);
    if (done > 0) return static_cast<size_t>(done);
    switch (SSL_get_error(session, done)) {
      case SSL_ERROR_WANT_READ:
        if (Status ready = patience.Await(fd, POLLIN); !ready.ok()) return ready;
        break;
      case SSL_ERROR_WANT_WRITE:
        if (Status ready = patience.Await(fd, POLLOUT); !ready.ok()) return ready;
        break;
      case SSL_ERROR_ZERO_RETURN:
        return size_t{0};
      default:
        return TlsError(session);
    }
  }
}

StatusOr<Session> NewSession(const HttpsServer& server, int fd) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return Status(ENOMEM, "TLS: no memory");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // A server that closes without close_notify is checked by the response's length.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  const bool loaded =
      server.ca_file.empty()
          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
          : SSL_CTX_load_verify_locations(context.get(), server.ca_file.c_str(), nullptr) == 1;
  if (!loaded) {
    ERR_clear_error();
    return Status(EINVAL, server.ca_file + " holds no authority for the server");
  }
  Session session(SSL_new(context.get()));
  if (session == nullptr) return Status(ENOMEM, "TLS: no memory");
  if (IsAddress(server.host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), server.host.c_str());
  } else {
    SSL_set1_host(session.get(), server.host.c_str());
    SSL_set_tlsext_host_name(session.get(), server.host.c_str());
  }
  SSL_set_fd(session.get(), fd);
  return session;
}

}  // namespace

StatusOr<HttpResponse> CallHttps(const HttpsServer& server, const HttpRequest& request,
                                 const std::string& token, std::chrono::milliseconds time_limit,
                                 const std::atomic<bool>& stop) {
  const Patience patience(time_limit, stop);
  auto connected = ConnectTo(server.host, server.port, patience);
  if (!connected.ok()) return connected.status();
  const int fd = connected->get();
  auto session = NewSession(server, fd);
  if (!session.ok()) return session.status();
  SSL* const tls = session->get();
  if (auto done = Repeat(tls, fd, patience, SSL_connect); !done.ok()) return done.status();
  return Exchange(
      HeadOf(server.host, server.port, request, token) + request.body,
      [&](const char* bytes, size_t size) {
        return Repeat(tls, fd, patience,
                      [&](SSL* to) { return SSL_write(to, bytes, static_cast<int>(size)); });
      },
      [&](char* bytes, size_t size) {
        return Repeat(tls, fd, patience,
                      [&](SSL* from) { return SSL_read(from, bytes, static_cast<int>(size)); });
      });
}

}  // namespace rocegw::kubeapi
