// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate_diagnosis.h"

#include "controlplane/identity/join_token.h"
#include "gateway/base/service_advice.h"
#include "proto/rules/finding.h"

namespace rocegw::identity {
namespace {

using gateway::v1::Diagnosis;
using rules::Check;

// Fraction of a certificate's life that is left when its renewal has failed for long.
constexpr int kLittle = 4;
// A change of the authority takes a day or longer, and must be planned.
constexpr std::chrono::hours kYear(24 * 365);

struct Life {
  TimePoint issued;
  TimePoint not_after;
  TimePoint::duration little;  // remaining time from which action is due

  Life(TimePoint begin, TimePoint end)
      : issued(begin), not_after(end), little((end - begin) / kLittle) {}
};

// Texts for the effect of an expiry and its remedy.
struct Words {
  const char* when_ended;
  std::string renew;
  const char* when_short;
  std::string look;
};

Diagnosis DiagnoseLife(Check check, const Life& life, TimePoint now, const Words& words) {
  if (now >= life.not_after) {
    return std::move(check).Fail("ended " + TimeText(life.not_after), words.when_ended,
                                 words.renew);
  }
  if (now + kClockTolerance < life.issued) {
    return std::move(check).Fail(
        "made at " + TimeText(life.issued) + ", in the future",
        "a clock is wrong, or was wrong then; the certificate may end too late or be refused",
        "set the clocks of this host and of the controller; what is renewed then is right");
  }
  const std::string found = "good until " + TimeText(life.not_after);
  if (life.not_after - now < life.little)
    return std::move(check).Warn(found, words.when_short, words.look);
  return std::move(check).Ok(found);
}

bool IsFor(X509& certificate, const std::string& host) {
  return X509_check_host(&certificate, host.data(), host.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(&certificate, host.c_str(), 0) == 1;
}

// Returns the certificate that issued this one, valid or not; null: none.
X509* IssuerOf(X509& certificate, const std::vector<X509Certificate>& trusted) {
  for (const X509Certificate& one : trusted) {
    if (X509_check_issued(one.get(), &certificate) == X509_V_OK &&
        X509_verify(&certificate, X509_get0_pubkey(one.get())) == 1)
      return one.get();
  }
  return nullptr;
}

Diagnosis DiagnoseServer(X509& certificate, const std::string& host, TimePoint now) {
  Check check("controller_certificate", "controller");
  const CertificateFacts facts = FactsOf(certificate);
  if (!host.empty() && !IsFor(certificate, host)) {
    std::string names;
    for (const std::string& name : facts.names) names += (names.empty() ? "" : ", ") + name;
    return std::move(check).Fail(
        "is for " + names + ", not for " + host, "who calls it by that name does not trust it",
        "names: [\"" + host + "\"] in rocegw-controller.yaml, or set-context --server-name");
  }
  return DiagnoseLife(
      std::move(check), {facts.issued, facts.not_after}, now,
      {.when_ended = "nobody can connect to it; what gateways run goes on",
       .renew = HowToStart("rocegw-controller") + ": it makes a new one",
       .when_short = "it should have been renewed at half of its life",
       .look = HowToReadLog("rocegw-controller") + ": it says why it makes no new one"});
}

Diagnosis DiagnoseAuthority(X509& certificate, TimePoint now) {
  const CertificateFacts facts = FactsOf(certificate);
  Life life(facts.issued, facts.not_after);
  life.little = kYear;
  const std::string remedy = "docs/operate/security.md, taking over from another authority";
  return DiagnoseLife(Check("authority", "fleet"), life, now,
                      {.when_ended = "no certificate of the fleet holds any more",
                       .renew = remedy,
                       .when_short = "all nodes and users must have others by then",
                       .look = remedy});
}

Diagnosis DiagnoseOwn(const std::optional<CertificateFacts>& own, TimePoint now) {
  const std::string make =
      " on a controller's host, then rocegwctl config set-context --certificate --key";
  if (!own) {
    return Check("client_certificate", "caller")
        .Fail("the context names none", "the controller lets nobody in without",
              "rocegw-controller user-certificate NAME" + make);
  }
  // "user/alice" of "spiffe://DOMAIN/user/alice".
  const std::string& uri = own->uri;
  const size_t domain = uri.find("//");
  const size_t path = domain == std::string::npos ? domain : uri.find('/', domain + 2);
  const std::string who = path == std::string::npos ? "caller" : uri.substr(path + 1);
  const std::string renew =
      "rocegw-controller user-certificate " + who.substr(who.rfind('/') + 1) + make;
  return DiagnoseLife(Check("client_certificate", who), {own->issued, own->not_after}, now,
                      {.when_ended = "the controller lets the caller in no more",
                       .renew = renew,
                       .when_short = "nothing renews it by itself",
                       .look = renew});
}

}  // namespace

Diagnosis DiagnoseCertificate(const std::string& object, TimePoint issued, TimePoint not_after,
                              TimePoint now) {
  return DiagnoseLife(
      Check("agent_certificate", object), {issued, not_after}, now,
      {.when_ended = "the agent cannot connect; what the gateway runs goes on",
       .renew = "rocegw-controller join-token --gateway NAME, then rocegw-agent --join on the host",
       .when_short = "it should have been renewed at half of its life",
       .look = HowToReadLog("rocegw-agent") + ": it says why the controller refuses"});
}

std::vector<Diagnosis> DiagnoseCaller(const CallerView& view, TimePoint now) {
  std::vector<Diagnosis> found;
  if (view.server != nullptr) {
    found.push_back(DiagnoseServer(*view.server, view.host, now));
    if (X509* const issuer = IssuerOf(*view.server, view.trusted)) {
      found.push_back(DiagnoseAuthority(*issuer, now));
    } else {
      found.push_back(
          Check("authority", "fleet")
              .Fail(
                  "none in " + view.trusted_file + " made the controller's certificate",
                  "the caller does not trust the controller",
                  "copy ca.crt from a controller's host, then rocegwctl config set-context --ca"));
    }
  }
  if (view.needs_own) found.push_back(DiagnoseOwn(view.own, now));
  return found;
}

}  // namespace rocegw::identity
