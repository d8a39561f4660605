// Makes tokens.json: keys, and tokens that `rulekeep_server::tokens` must accept or refuse, signed by another implementation.
// npm install jose@6 && node tokens.mjs > tokens.json
import { CompactSign, SignJWT, base64url, exportJWK, generateKeyPair } from "jose";

const issuer = "https://login.example", audience = "https://gate.example/mcp";
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
const claims = { iss: issuer, aud: audience, sub: "ann", scope: "mcp:call mcp:read", iat: 4000000000, nbf: 4000000000, exp: 4000003600 };

const keys = {}, jwks = { keys: [] };
for (const alg of algorithms) {
  keys[alg] = await generateKeyPair(alg, { extractable: true });
  jwks.keys.push({ ...(await exportJWK(keys[alg].publicKey)), kid: alg, alg, use: "sig" });
}
keys.open = await generateKeyPair("ES256", { extractable: true });
jwks.keys.push({ ...(await exportJWK(keys.open.publicKey)), kid: "open" }); // names no algorithm
keys.sealing = await generateKeyPair("ES256", { extractable: true });
jwks.keys.push({ ...(await exportJWK(keys.sealing.publicKey)), kid: "sealing", use: "enc" });
jwks.keys.push({ kty: "oct", kid: "shared", k: base64url.encode("a secret that both sides know ...") });
jwks.keys.push({ kty: "EC", crv: "P-521", kid: "unknown curve", x: "AA", y: "AA" }, { kty: "new", kid: "unknown type" });

const signed = (change = {}, { alg = "ES256", kid = alg, key = keys[alg]?.privateKey, header = {} } = {}) =>
  new SignJWT({ ...claims, ...change }).setProtectedHeader({ alg, kid, ...header }).sign(key);
const secret = (text) => new TextEncoder().encode(text);
const part = (value) => base64url.encode(JSON.stringify(value));
const rsa = jwks.keys.find((key) => key.kid === "RS256");
const good = await signed();
const [head, body, signature] = good.split(".");

const accepted = {};
for (const alg of algorithms) accepted[alg] = await signed({}, { alg });
Object.assign(accepted, {
  "a key without alg": await signed({}, { kid: "open", key: keys.open.privateKey }),
  "several audiences": await signed({ aud: ["https://other.example", audience] }),
  "typ at+jwt": await signed({}, { header: { typ: "at+jwt" } }),
  "live": await signed({ nbf: 0 }), // valid when the tests run
  "live, of bob": await signed({ sub: "bob", nbf: 0 }),
  "live, without scopes": await signed({ scope: undefined, nbf: 0 }),
  "live, odd subject": await signed({ sub: "ann smith\n", nbf: 0 }),
});
const refused = {
  "alg none": ["Algorithm", `${part({ alg: "none", kid: "ES256" })}.${body}.`],
  "HS256 with the public key": ["Algorithm", await signed({}, { alg: "HS256", kid: "RS256", key: secret(rsa.n) })],
  "HS256 with the shared key": ["Algorithm", await signed({}, { alg: "HS256", kid: "shared", key: secret("a secret that both sides know ...") })],
  "another alg than the key's": ["Algorithm", await signed({}, { alg: "PS256", kid: "RS256", key: keys.PS256.privateKey })],
  "another type than the key's": ["Algorithm", await signed({}, { alg: "RS256", kid: "open" })],
  "another curve than the key's": ["Algorithm", await signed({}, { alg: "ES384", kid: "open" })],
  "no kid": ["UnknownKey", await signed({}, { header: { kid: undefined } })],
  "unknown kid": ["UnknownKey", await signed({}, { kid: "other" })],
  "a key for encryption": ["UnknownKey", await signed({}, { kid: "sealing", key: keys.sealing.privateKey })],
  "another key": ["Signature", await signed({}, { key: keys.open.privateKey })],
  "another body": ["Signature", `${head}.${part({ ...claims, sub: "root" })}.${signature}`],
  "no signature": ["Signature", `${head}.${body}.`],
  "a key in the header": ["UnknownKey", await signed({}, { kid: "mine", key: keys.open.privateKey, header: { jwk: await exportJWK(keys.open.publicKey) } })],
  "an extension that must be understood": ["Malformed", await signed({}, {}).then(async (token) => `${part({ alg: "ES256", kid: "ES256", crit: ["exp2"], exp2: 1 })}.${token.split(".").slice(1).join(".")}`)],
  "no token": ["Malformed", "hello"],
  "four parts": ["Malformed", `${good}.x`],
  "claims that are a list": ["Malformed", await new CompactSign(secret("[1]")).setProtectedHeader({ alg: "ES256", kid: "ES256" }).sign(keys.ES256.privateKey)],
  "a claim twice": ["Malformed", await new CompactSign(secret(JSON.stringify(claims).replace("{", '{"aud":"x",'))).setProtectedHeader({ alg: "ES256", kid: "ES256" }).sign(keys.ES256.privateKey)],
  "another issuer": ["Issuer", await signed({ iss: "https://evil.example" })],
  "several issuers": ["Issuer", await signed({ iss: [issuer, "https://evil.example"] })],
  "no issuer": ["Issuer", await signed({ iss: undefined })],
  "another audience": ["Audience", await signed({ aud: "https://other.example" })],
  "the audience with a slash": ["Audience", await signed({ aud: audience + "/" })],
  "no audience": ["Audience", await signed({ aud: undefined })],
  "expired": ["Expired", await signed({ exp: 4000001000 })],
  "no expiry": ["Claim", await signed({ exp: undefined })],
  "an expiry in words": ["Claim", await signed({ exp: "never" })],
  "a negative expiry": ["Claim", await signed({ exp: -1 })],
  "an endless expiry": ["Malformed", await new CompactSign(secret(JSON.stringify(claims).replace("4000003600", "1e999"))).setProtectedHeader({ alg: "ES256", kid: "ES256" }).sign(keys.ES256.privateKey)],
  "not valid yet": ["NotYet", await signed({ nbf: 4000003000 })],
  "a start in words": ["Claim", await signed({ nbf: "soon" })],
  "no subject": ["Claim", await signed({ sub: undefined })],
  "an empty subject": ["Claim", await signed({ sub: "" })],
  "a subject that is a number": ["Claim", await signed({ sub: 7 })],
};
console.log(JSON.stringify({ issuer, audience, now: 4000002000, jwks, accepted, refused }, null, 1));
