// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/api_server.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <vector>

#include "tests/support/apiserver/fake_api_server.h"

namespace rocegw::kubeapi {
namespace {

using testing::FakeApiServer;

class ApiServerTest : public ::testing::Test {
 protected:
  ApiServerTest() {
    char pattern[] = "/tmp/rocegw-api-XXXXXX";
    folder = ::mkdtemp(pattern);
    fake = std::make_unique<FakeApiServer>(folder);
    settings = fake->settings();
  }
  ~ApiServerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  StatusOr<ApiAnswer> Call(HttpRequest request) {
    ApiServer server(settings);
    std::promise<StatusOr<ApiAnswer>> told;
    server.Call(std::move(request), [&](const auto& answer) { told.set_value(answer); });
    return told.get_future().get();
  }
  StatusOr<ApiAnswer> Get(const std::string& path) { return Call({"GET", path, "", ""}); }

  std::string folder;
  std::unique_ptr<FakeApiServer> fake;
  ApiServerSettings settings;
};

TEST_F(ApiServerTest, Object_IsRead_WholeAndInChunks) {
  fake->PutPod("web", "a", "uid-a", "trainer");
  for (const bool chunked : {false, true}) {
    fake->SetChunked(chunked);
    const auto pod = Get("/api/v1/namespaces/web/pods/a");
    ASSERT_TRUE(pod.ok()) << pod.status().text();
    EXPECT_EQ(pod.value().object["spec"]["serviceAccountName"], "trainer");
  }
}

TEST_F(ApiServerTest, ErrorsOfTheServer_AreToldApart) {
  EXPECT_EQ(Get("/api/v1/namespaces/web/pods/none").status().error(), ENOENT);
  fake->FailWith(403);
  const auto forbidden = Get("/api/v1/namespaces/web/pods/a");
  EXPECT_EQ(forbidden.status().error(), EACCES);
  EXPECT_NE(forbidden.status().text().find("as the test wants it"), std::string::npos);
  fake->FailWith(503);
  EXPECT_EQ(Get("/x").status().error(), EAGAIN);
  fake->FailWith(429);
  EXPECT_EQ(Get("/x").status().error(), EAGAIN);
  fake->FailWith(409);
  EXPECT_EQ(Get("/x").status().error(), EEXIST);
  fake->FailWith(422);
  EXPECT_EQ(Get("/x").status().error(), EINVAL);
}

TEST_F(ApiServerTest, CutAnswer_IsNoAnswer) {
  fake->PutPod("web", "a", "uid-a", "trainer");
  fake->SetCut(true);
  EXPECT_FALSE(Get("/api/v1/namespaces/web/pods/a").ok());
}

TEST_F(ApiServerTest, ServerOfAnotherAuthority_IsNotAsked) {
  char pattern[] = "/tmp/rocegw-api2-XXXXXX";
  const std::string other = ::mkdtemp(pattern);
  const FakeApiServer stranger(other);
  settings.server.port = std::to_string(stranger.port());
  const auto answer = Get("/api/v1/namespaces/web");
  EXPECT_EQ(answer.status().error(), EACCES) << answer.status().text();
  EXPECT_TRUE(stranger.calls().empty()) << "it has not seen the token";
  std::filesystem::remove_all(other);
}

TEST_F(ApiServerTest, CertificateForAnotherName_IsNotGood) {
  settings.server.host = "127.0.0.2";
  EXPECT_FALSE(Get("/api/v1/namespaces/web").ok());
  EXPECT_TRUE(fake->calls().empty());
}

TEST_F(ApiServerTest, TokenIsReadForEachCall) {
  std::filesystem::remove(settings.token_file);
  EXPECT_NE(Get("/api/v1/nodes").status().text().find("holds no token"), std::string::npos);
  std::ofstream(settings.token_file) << "old";
  EXPECT_EQ(Get("/api/v1/nodes").status().error(), EACCES);
  std::ofstream(settings.token_file) << "token-of-the-pod\n";
  EXPECT_TRUE(Get("/api/v1/nodes").ok());
}

TEST_F(ApiServerTest, CallsBeyondTheRate_WaitAndEndInTime) {
  settings.calls_per_second = 1;
  settings.burst = 3;
  settings.time_limit = std::chrono::milliseconds(300);
  ApiServer server(settings);
  std::vector<std::promise<int>> told(8);
  for (auto& one : told) {
    server.Call({"GET", "/api/v1/nodes", "", ""},
                [&](const auto& answer) { one.set_value(answer.status().error()); });
  }
  int in_time = 0;
  for (auto& one : told) {
    const int error = one.get_future().get();
    EXPECT_TRUE(error == 0 || error == ETIMEDOUT) << error;
    in_time += error == 0 ? 1 : 0;
  }
  EXPECT_EQ(in_time, 3);
  EXPECT_EQ(fake->calls().size(), 3u);
}

TEST_F(ApiServerTest, FullQueue_RefusesAtOnce) {
  settings.calls_per_second = 0.001;
  settings.burst = 0;
  ApiServer server(settings);
  for (size_t i = 0; i < ApiServer::kMostWaiting; ++i)
    server.Call({"GET", "/api/v1/nodes", "", ""}, [](const auto&) {});
  int error = 0;
  server.Call({"GET", "/api/v1/nodes", "", ""},
              [&](const auto& answer) { error = answer.status().error(); });
  EXPECT_EQ(error, EAGAIN);
}

TEST_F(ApiServerTest, OutsideOfAPod_SaysSo) {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(InCluster().status().error(), ENOENT);
  ::setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", std::to_string(fake->port()).c_str(), 1);
  auto found = InCluster(folder);
  ASSERT_TRUE(found.ok());
  settings = *found;
  EXPECT_TRUE(Get("/api/v1/nodes").ok());
}

}  // namespace
}  // namespace rocegw::kubeapi
