// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/api_server.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace rocegw::kubeapi {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 2;

int ErrorOf(int status) {
  switch (status) {
    case 401:
    case 403:
      return EACCES;
    case 404:
      return ENOENT;
    case 409:
      return EEXIST;
    case 429:
      return EAGAIN;
    default:
      return status >= 500 ? EAGAIN : EINVAL;
  }
}

// Uses the text of a Status object.
std::string TextOf(const HttpRequest& request, const HttpResponse& response,
                   const nlohmann::json& object) {
  std::string text = "the API server answers " + std::to_string(response.status) + " to " +
                     request.method + " " + request.path;
  if (object.is_object() && object.contains("message") && object["message"].is_string())
    text += ": " + object["message"].get<std::string>();
  return text;
}

StatusOr<std::string> ReadToken(const std::string& file) {
  std::ifstream in(file);
  std::string token{std::istreambuf_iterator<char>(in), {}};
  std::erase_if(token, [](unsigned char c) { return c <= ' '; });
  if (!token.empty()) return token;
  return Status(ENOENT, file + " holds no token: the pod has none for the API server");
}

}  // namespace

StatusOr<ApiServerSettings> InCluster(const std::string& folder) {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == 0) {
    return Status(ENOENT,
                  "this process is in no pod of a cluster: KUBERNETES_SERVICE_HOST is not set");
  }
  ApiServerSettings settings;
  settings.server = {host, port, folder + "/ca.crt"};
  settings.token_file = folder + "/token";
  return settings;
}

ApiServer::ApiServer(ApiServerSettings settings)
    : settings_(std::move(settings)), share_(settings_.burst), filled_at_(Clock::now()) {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
}

ApiServer::~ApiServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ApiServer::Call(HttpRequest request, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kMostWaiting) {
      waiting_.push_back(
          {std::move(request), std::move(done), Clock::now() + settings_.time_limit});
      changed_.notify_one();
      return;
    }
  }
  done(Status(EAGAIN, "too many questions for the API server wait already"));
}

Clock::time_point ApiServer::TakeShare(Clock::time_point now) {
  const std::chrono::duration<double> passed = now - filled_at_;
  share_ = std::min(settings_.burst, share_ + settings_.calls_per_second * passed.count());
  filled_at_ = now;
  if (share_ >= 1) {
    share_ -= 1;
    return now;
  }
  return now + std::chrono::duration_cast<Clock::duration>(
                   std::chrono::duration<double>((1 - share_) / settings_.calls_per_second));
}

void ApiServer::Run() {
  // A server that closes early must not raise a signal in the process.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto now = Clock::now();
    if (waiting_.front().until > now) {
      const auto begin = TakeShare(now);
      if (begin > now) {
        changed_.wait_until(lock, std::min(begin, waiting_.front().until));
        continue;
      }
    }
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto answer = Answer(next);
    if (!stop_) next.done(answer);
    lock.lock();
  }
}

StatusOr<ApiAnswer> ApiServer::Answer(const Waiting& waiting) const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(waiting.until - Clock::now());
  if (left.count() <= 0) return Status(ETIMEDOUT, "the API server was not asked in time");
  const auto token = ReadToken(settings_.token_file);
  if (!token.ok()) return token.status();
  const auto response = CallHttps(settings_.server, waiting.request, token.value(), left, stop_);
  if (!response.ok()) {
    return Status(response.status().error(), "the API server at " + settings_.server.host + ":" +
                                                 settings_.server.port +
                                                 " does not answer: " + response.status().text());
  }
  ApiAnswer answer{response.value().status,
                   nlohmann::json::parse(response.value().body, nullptr, false)};
  if (answer.status >= 300) {
    return Status(ErrorOf(answer.status), TextOf(waiting.request, response.value(), answer.object));
  }
  if (answer.object.is_discarded()) return Status(EBADMSG, "the API server's answer is no JSON");
  return answer;
}

}  // namespace rocegw::kubeapi
