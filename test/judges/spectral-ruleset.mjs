// The OWASP rules for openapi.json, except those that do not fit this API.
import owasp from '@stoplight/spectral-owasp-ruleset'

const PATHS = 'openapi.json#/paths'

export default {
  extends: owasp,
  rules: {
    // The contract bounds no text, list or count. The whole request is bounded (MAX_BODY_BYTES, MAX_HEADER_BYTES); the
    // only integer in a request, batchYear, has its own bounds.
    'owasp:api4:2023-string-limit': 'off',
    'owasp:api4:2023-string-restricted': 'off',
    'owasp:api4:2023-array-limit': 'off',
    'owasp:api4:2023-integer-limit': 'off',
    // Sign-in, registration and submissions have documented limits. All others return 503 with Retry-After. There are
    // no quotas, and so no headers about them.
    'owasp:api4:2023-rate-limit': 'off',
    'owasp:api4:2023-rate-limit-responses-429': 'off',
    // The header is in every response to a browser app of FRONTEND_URL; other callers do not need CORS.
    'owasp:api8:2023-define-cors-origin': 'off',
    // Permissions of admins follow from the role in the token, and each operation names its roles.
    'owasp:api5:2023-admin-security-unique': 'off',
  },
  overrides: [
    {
      // Operations that sign in need no token.
      files: [
        `${PATHS}/~1auth~1google/post`,
        `${PATHS}/~1auth~1login/post`,
        `${PATHS}/~1auth~1register/post`,
      ],
      rules: { 'owasp:api2:2023-write-restricted': 'off', 'owasp:api8:2023-define-error-responses-401': 'off' },
    },
    {
      // Public lists, the sign-in, and the probes.
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
      // These have no declared 500: they need no input, return 503 or an empty list instead, or always reject.
      files: [
        `${PATHS}/~1livez/get`,
        `${PATHS}/~1mentors/get`,
        `${PATHS}/~1readyz/get`,
        `${PATHS}/~1users~1%7BuserId%7D~1club/delete`,
      ],
      rules: { 'owasp:api8:2023-define-error-responses-500': 'off' },
    },
    {
      // The service does not request these URLs: a browser is redirected to them after a sign-in.
      files: [`${PATHS}/~1auth~1google~1start/get`],
      rules: { 'owasp:api7:2023-concerning-url-parameter': 'off' },
    },
  ],
}
