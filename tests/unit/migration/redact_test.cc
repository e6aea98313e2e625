// SPDX-License-Identifier: Apache-2.0
// Failure case 31: secrets of the storage system must not reach logs, events and audit records.
#include "controlplane/migration/adapter/redact.h"

#include <gtest/gtest.h>

#include "controlplane/migration/adapter/protocol.h"

namespace rocegw::migration {
namespace {

// Made for this test; it opens nothing.
constexpr const char* kCephKey = "AQBzdGF0aWMga2V5IG9mIGEgdGVzdCBvbmx5IQ==";

TEST(Redacted, C31_ASecretInAnAnswerIsRedacted) {
  const std::string line = std::string(R"({"protocol":1,"id":"7","outcome":"failed","text":)") +
                           R"("auth: [osd.1] key = )" + kCephKey + R"( refused"})";
  const AdapterAnswer answer = ReadAnswer(line, "7");
  EXPECT_EQ(answer.text, "auth: [osd.1] key = [redacted] refused");
}

TEST(Redacted, KeysOfStorageSystems) {
  ASSERT_EQ(std::string(kCephKey).size(), 40U);
  EXPECT_EQ(Redacted(std::string("bad key ") + kCephKey), "bad key [redacted]");
  EXPECT_EQ(Redacted("secret DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n: wrong"),
            "secret [redacted] wrong");
  EXPECT_EQ(Redacted("NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9:"), "[redacted]");
}

TEST(Redacted, ValuesAfterNames) {
  EXPECT_EQ(Redacted("password=hunter2, user=root"), "password=[redacted], user=root");
  EXPECT_EQ(Redacted(R"({"client_secret": "abc def", "a": 1})"),
            R"({"client_secret": "[redacted]", "a": 1})");
  EXPECT_EQ(Redacted("Authorization: Bearer eyJhbGciOi.J9.x"), "Authorization: Bearer [redacted]");
  EXPECT_EQ(Redacted("--dhchap-secret=abc --traddr=192.0.2.1"),
            "--dhchap-secret=[redacted] --traddr=192.0.2.1");
  EXPECT_EQ(Redacted("node.session.auth.password : x"), "node.session.auth.password : [redacted]");
}

TEST(Redacted, StringsAreRedactedAsAWhole) {
  EXPECT_EQ(Redacted(R"({"password": "a,b;c", "user": "root"})"),
            R"({"password": "[redacted]", "user": "root"})");
  EXPECT_EQ(Redacted(R"({"password": "a\"b, c\\", "d": 1})"),
            R"({"password": "[redacted]", "d": 1})");
  EXPECT_EQ(Redacted("{'token': 'a \"b\" c', 'd': 1}"), "{'token': '[redacted]', 'd': 1}");
  EXPECT_EQ(Redacted(R"(password="a, b" user=root)"), R"(password="[redacted]" user=root)");
  // The end was cut off.
  EXPECT_EQ(Redacted(R"({"password": "a,b;c d)"), R"({"password": "[redacted])");
  EXPECT_EQ(Redacted(R"({"password": "a\)"), R"({"password": "[redacted])");
  EXPECT_EQ(Redacted(R"({"password": "", "user": "root"})"), R"({"password": "", "user": "root"})");
}

TEST(Redacted, ValuesAfterOptions) {
  EXPECT_EQ(Redacted("tool --password hunter2 --user root"),
            "tool --password [redacted] --user root");
  EXPECT_EQ(Redacted("['tool', '--password', 'hunter2, x', 'y']"),
            "['tool', '--password', '[redacted]', 'y']");
  EXPECT_EQ(Redacted(R"(["--dhchap-secret", "abc"])"), R"(["--dhchap-secret", "[redacted]"])");
  EXPECT_EQ(Redacted("tool --token --verbose"), "tool --token --verbose");
  EXPECT_EQ(Redacted("tool '--password'"), "tool '--password'");
  EXPECT_EQ(Redacted("tool --keyring /etc/ceph/keyring --key /etc/key"),
            "tool --keyring /etc/ceph/keyring --key /etc/key");
}

TEST(Redacted, PasswordsInUrls) {
  EXPECT_EQ(Redacted("GET https://admin:pa55@host:8443/a failed"),
            "GET https://admin:[redacted]@host:8443/a failed");
  EXPECT_EQ(Redacted("http://host:9090/a@b"), "http://host:9090/a@b");
}

TEST(Redacted, PrivateKeysAlsoWithoutTheirEnd) {
  EXPECT_EQ(Redacted("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b"),
            "a [redacted] b");
  EXPECT_EQ(Redacted("-----BEGIN PRIVATE KEY-----\nMIIE"), "[redacted]");
  EXPECT_EQ(Redacted("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"),
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----");
}

TEST(Redacted, OtherTextStays) {
  for (const char* text :
       {"", "3 I/Os in flight", "key", "token", "no secret was given", "key=short",
        "sha256:6d91e4ba5a2dc02b6a3fdcb75c6dd7d24b0b7e3b7ab4ef06", "missing key: /etc/ceph/keyring",
        "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555",
        "path 10.0.0.1:4420"})
    EXPECT_EQ(Redacted(text), text);
}

}  // namespace
}  // namespace rocegw::migration
