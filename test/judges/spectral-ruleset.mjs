// The OWASP rules for openapi.json, but for those that do not fit this interface.
import owasp from '@stoplight/spectral-owasp-ruleset'

const PATHS = 'openapi.json#/paths'

export default {
  extends: owasp,
  rules: {
    // The interface bounds no text, list or count, and what it lets in is not to change. What is bounded is the whole
    // request (MAX_BODY_BYTES, MAX_HEADER_BYTES); the one integer that comes in, batchYear, has bounds of its own.
    'owasp:api4:2023-string-limit': 'off',
    'owasp:api4:2023-string-restricted': 'off',
    'owasp:api4:2023-array-limit': 'off',
    'owasp:api4:2023-integer-limit': 'off',
    // Sign-in, registration and submissions are limited, and say so. All others refuse by 503 with Retry-After, and
    // nobody is told of a budget by headers, because nobody has one.
    'owasp:api4:2023-rate-limit': 'off',
    'owasp:api4:2023-rate-limit-responses-429': 'off',
    // The header is there when the browser's origin is in FRONTEND_URL, with every response; CORS is not for callers.
    'owasp:api8:2023-define-cors-origin': 'off',
    // What an admin may do is in the role of the token, and each operation names the roles that it lets in.
    'owasp:api5:2023-admin-security-unique': 'off',
  },
  overrides: [
    {
      // Nobody has a token before these.
      files: [
        `${PATHS}/~1auth~1google/post`,
        `${PATHS}/~1auth~1login/post`,
        `${PATHS}/~1auth~1register/post`,
      ],
      rules: { 'owasp:api2:2023-write-restricted': 'off', 'owasp:api8:2023-define-error-responses-401': 'off' },
    },
    {
      // Public: anybody reads them, signs in by them, or asks whether the service runs.
      files: [
        `${PATHS}/~1auth~1google~1callback/get`,
        `${PATHS}/~1auth~1google~1start/get`,
        `${PATHS}/~1blogs/get`,
        `${PATHS}/~1blogs~1%7Bid%7D/get`,
        `${PATHS}/~1clubs/get`,
        `${PATHS}/~1events/get`,
        `${PATHS}/~1livez/get`,
        `${PATHS}/~1mentors/get`,
        `${PATHS}/~1readyz/get`,
        `${PATHS}/~1testimonials/get`,
      ],
      rules: { 'owasp:api2:2023-read-restricted': 'off', 'owasp:api8:2023-define-error-responses-401': 'off' },
    },
    {
      // These do not fail: they ask for nothing, return 503 instead, or an empty list, or refuse everything.
      files: [
        `${PATHS}/~1livez/get`,
        `${PATHS}/~1mentors/get`,
        `${PATHS}/~1readyz/get`,
        `${PATHS}/~1users~1%7BuserId%7D~1club/delete`,
      ],
      rules: { 'owasp:api8:2023-define-error-responses-500': 'off' },
    },
    {
      // The service requests nothing from there: it is the page of the browser app that a sign-in ends at.
      files: [`${PATHS}/~1auth~1google~1start/get`],
      rules: { 'owasp:api7:2023-concerning-url-parameter': 'off' },
    },
  ],
}
