// Starts Swagger UI on the page /docs. Runs in the browser.
(() => {
  /** Key in the session storage: the credential survives a reload, but not the tab. */
  const KEPT = 'authorized';

  const base = document.currentScript.src;
  const urlOf = (path) => new URL(path, base).href;

  /**
   * Prefills "Try it out" with a request for summaries, which have the newest value of every price.
   * Fixed dates would become outdated.
   */
  const prefilled = (openapi) => {
    const { parameters, examples } = openapi.components;
    examples.NewestRequest = {
      summary: 'Newest value of every price',
      value: { options: { includeSummary: true } },
    };
    for (const [path, { post }] of Object.entries(openapi.paths)) {
      const body = post?.requestBody?.content['application/json'];
      if (!body || !path.startsWith('/v3/prices/')) continue;
      const newest = { $ref: '#/components/examples/NewestRequest' };
      body.examples = { newest, ...body.examples };
    }
    // Examples of all parameters together would be another request.
    for (const parameter of Object.values(parameters)) {
      if (!parameter.required) delete parameter.example;
    }
    parameters.includeSummary.example = true;
    // The service that serves the page, whatever its public address is.
    openapi.servers = [{ url: urlOf('../..').replace(/\/$/, '') }];
    return openapi;
  };

  const Newest = () => ({
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (original) => (text) => original(JSON.stringify(prefilled(JSON.parse(text)))),
        },
      },
    },
  });

  const KeptInTab = () => ({
    statePlugins: {
      auth: {
        wrapActions: {
          persistAuthorizationIfNeeded: (_original, system) => () => {
            const authorized = system.authSelectors.authorized().toJS();
            sessionStorage.setItem(KEPT, JSON.stringify(authorized));
          },
        },
      },
    },
  });

  window.addEventListener('load', () => {
    const ui = SwaggerUIBundle({
      url: urlOf('../../openapi.json'),
      oauth2RedirectUrl: urlOf('oauth2-redirect.html'),
      dom_id: '#swagger-ui',
      layout: 'StandaloneLayout',
      presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
      plugins: [SwaggerUIBundle.plugins.DownloadUrl, Newest, KeptInTab],
      docExpansion: 'list',
      deepLinking: true,
      validatorUrl: null,
      // A browser adds the remembered password of HTTP Basic, beside x-api-key a second credential.
      requestInterceptor: (request) => ({ ...request, credentials: 'omit' }),
      // Swagger UI would store the credential for all tabs and permanently.
      persistAuthorization: false,
      onComplete: () => {
        const kept = sessionStorage.getItem(KEPT);
        if (kept !== null) ui.authActions.restoreAuthorization({ authorized: JSON.parse(kept) });
      },
    });
  });
})();
